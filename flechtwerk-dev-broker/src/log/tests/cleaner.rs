//! A history that was given to a Kafka 4.4 with small segments, and what its cleaner left after each of its rounds.

use super::*;
use crate::log::{CompactOptions, LogConfig};

const RETENTION: i64 = 3000;
const A: i64 = 1;
const B: i64 = 2;

/// A batch: base offset, last offset, count, and whether it is a marker (`m`) and has a delete horizon (`h`).
type Shape = (i64, i64, i32, &'static str);

/// Keys in capitals are tombstones.
fn keys(keys: &str) -> Vec<Sent> {
    let sent = keys.chars().map(|key| {
        let name = key.to_ascii_lowercase().to_string();
        if key.is_ascii_uppercase() { tombstone(&name) } else { record(&name, "v") }
    });
    sent.collect()
}

/// The aborted transactions of a read from the start, and the batches.
fn left(log: &PartitionLog) -> (Vec<(i64, i64)>, Vec<Shape>) {
    let fetched = log.read(0, usize::MAX, Isolation::ReadCommitted, true).unwrap();
    let shape = batches(&fetched.records).into_iter().map(|(header, _)| {
        let flags = match (header.is_control(), header.delete_horizon().is_some()) {
            (false, false) => "",
            (false, true) => "h",
            (true, false) => "m",
            (true, true) => "mh",
        };
        (header.base_offset, header.last_offset(), header.count, flags)
    });
    (fetched.aborted, shape.collect())
}

#[test]
fn rounds_leave_what_kafka_leaves() {
    let mut log = PartitionLog::in_memory(LogConfig {
        compact: true,
        delete_retention_ms: RETENTION,
        ..LogConfig::default()
    });
    append(&mut log, &Batch::plain(keys("ab")));
    append(&mut log, &Batch::idempotent((3, 0, 0), keys("a")));
    append(&mut log, &Batch::transactional((A, 0, 0), keys("cd")));
    append(&mut log, &Batch::transactional((B, 0, 0), keys("e")));
    log.append_marker(A, 0, false, 0, NOW).unwrap();
    log.append_marker(B, 0, true, 0, NOW).unwrap();
    append(&mut log, &Batch::transactional((A, 0, 2), keys("c")));
    log.append_marker(A, 0, true, 0, NOW).unwrap();
    append(&mut log, &Batch::transactional((B, 0, 1), keys("f")));
    log.append_marker(B, 0, false, 0, NOW).unwrap();
    append(&mut log, &Batch::plain(keys("AB")));
    append(&mut log, &Batch::plain(keys("be")));
    append(&mut log, &Batch::plain(keys("z")));
    let round = |log: &mut PartitionLog, now, active| {
        log.compact(now, CompactOptions { active_from: Some(active) }).unwrap();
        left(log)
    };

    let (aborted, batches) = round(&mut log, NOW, 9);
    assert_eq!(aborted, [(A, 3), (B, 10)]);
    let expected = [
        (0, 1, 1, ""),
        (2, 2, 1, ""),
        (5, 5, 1, ""),
        (6, 6, 1, "m"),
        (7, 7, 1, "m"),
        (8, 8, 1, ""),
        (9, 9, 1, "m"),
        (10, 10, 1, ""),
        (11, 11, 1, "m"),
        (12, 13, 2, ""),
        (14, 15, 2, ""),
        (16, 16, 1, ""),
    ];
    assert_eq!(batches, expected);

    let (aborted, batches) = round(&mut log, NOW, 16);
    assert_eq!(aborted, [(B, 10)]);
    let expected = [
        (2, 2, 0, ""),
        (6, 6, 1, "mh"),
        (7, 7, 1, "m"),
        (8, 8, 1, ""),
        (9, 9, 1, "m"),
        (10, 10, 0, ""),
        (11, 11, 1, "m"),
        (12, 13, 1, "h"),
        (14, 15, 2, ""),
        (16, 16, 1, ""),
    ];
    assert_eq!(batches, expected);

    append(&mut log, &Batch::plain(keys("z")));
    let (aborted, batches) = round(&mut log, NOW + RETENTION, 17);
    assert_eq!(aborted, [(B, 10)]);
    let expected = [
        (2, 2, 0, ""),
        (7, 7, 1, "mh"),
        (8, 8, 1, ""),
        (9, 9, 1, "m"),
        (10, 10, 0, ""),
        (11, 11, 1, "m"),
        (14, 15, 2, ""),
        (16, 16, 1, ""),
        (17, 17, 1, ""),
    ];
    assert_eq!(batches, expected);

    append(&mut log, &Batch::plain(keys("z")));
    let (aborted, batches) = round(&mut log, NOW + 2 * RETENTION, 18);
    assert_eq!(aborted, [(B, 10)]);
    let expected = [
        (2, 2, 0, ""),
        (8, 8, 1, ""),
        (9, 9, 1, "m"),
        (10, 10, 0, ""),
        (11, 11, 1, "m"),
        (14, 15, 2, ""),
        (17, 17, 1, ""),
        (18, 18, 1, ""),
    ];
    assert_eq!(batches, expected);
}
