//! Offsets by position, time and leader epoch, and the start of the log.

use super::*;
use crate::log::{FoundOffset, LogConfig, OffsetSpec};

fn timed(times: &[i64]) -> Batch {
    Batch::plain(times.iter().map(|time| Sent { timestamp: NOW + time, ..record("k", "v") }).collect())
}

fn found(log: &PartitionLog, spec: OffsetSpec, isolation: Isolation) -> Option<(i64, i64)> {
    log.offset_for(spec, isolation).map(|found| (found.offset, found.timestamp))
}

#[test]
fn ends_of_the_log() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &timed(&[1, 2]));
    append(&mut log, &Batch::transactional((1, 0, 0), vec![record("a", "1")]));
    append(&mut log, &timed(&[3]));
    let both = [Isolation::ReadUncommitted, Isolation::ReadCommitted];
    let of = |log: &PartitionLog, spec| {
        both.map(|isolation| found(log, spec, isolation).map(|(offset, _)| offset))
    };
    assert_eq!(of(&log, OffsetSpec::Latest), [Some(4), Some(2)]);
    assert_eq!(of(&log, OffsetSpec::Earliest), [Some(0), Some(0)]);
    log.delete_records(1).unwrap();
    assert_eq!(of(&log, OffsetSpec::Earliest), [Some(1), Some(1)]);
    log.delete_records(3).unwrap();
    assert_eq!(of(&log, OffsetSpec::Latest), [Some(4), Some(2)], "a real Kafka leaves it there");
    log.append_marker(1, 0, true, 0, NOW).unwrap();
    assert_eq!(of(&log, OffsetSpec::Latest), [Some(5), Some(5)]);
    let latest = log.offset_for(OffsetSpec::Latest, Isolation::ReadCommitted);
    assert_eq!(latest, Some(FoundOffset { offset: 5, timestamp: -1, leader_epoch: 0 }));
}

#[test]
fn offsets_by_time() {
    for compression in [Compression::None, Compression::Gzip, Compression::Snappy] {
        let mut log = PartitionLog::in_memory(LogConfig::default());
        let all = Isolation::ReadUncommitted;
        assert_eq!(found(&log, OffsetSpec::Timestamp(0), all), None);
        assert_eq!(found(&log, OffsetSpec::MaxTimestamp, all), None);
        append(&mut log, &Batch { compression, ..timed(&[10, 50, 20]) });
        append(&mut log, &Batch { compression, ..timed(&[30, 70, 70]) });
        append(&mut log, &Batch { compression, ..timed(&[60]) });
        let at = |time| found(&log, OffsetSpec::Timestamp(NOW + time), all);
        assert_eq!(at(0), Some((0, NOW + 10)));
        assert_eq!(at(20), Some((1, NOW + 50)));
        assert_eq!(at(51), Some((4, NOW + 70)));
        assert_eq!(at(71), None);
        assert_eq!(found(&log, OffsetSpec::MaxTimestamp, all), Some((4, NOW + 70)));
        log.delete_records(5).unwrap();
        let at = |time| found(&log, OffsetSpec::Timestamp(NOW + time), all);
        assert_eq!(at(0), Some((5, NOW + 70)));
    }
}

#[test]
fn what_is_not_stable_is_not_found() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &timed(&[10]));
    append(
        &mut log,
        &Batch::transactional((1, 0, 0), vec![Sent { timestamp: NOW + 20, ..record("a", "1") }]),
    );
    let spec = OffsetSpec::Timestamp(NOW + 20);
    assert_eq!(found(&log, spec, Isolation::ReadUncommitted), Some((1, NOW + 20)));
    assert_eq!(found(&log, spec, Isolation::ReadCommitted), None);
}

#[test]
fn opaque_batches_are_found_by_their_start() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &Batch { compression: Compression::Zstd, ..timed(&[10, 20]) });
    assert_eq!(found(&log, OffsetSpec::Timestamp(NOW + 15), Isolation::ReadUncommitted), Some((0, NOW + 20)));
}

#[test]
fn leader_epochs_end_where_the_next_begins() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &timed(&[1, 2]));
    log.set_leader_epoch(2);
    log.set_leader_epoch(3);
    append(&mut log, &timed(&[3]));
    log.set_leader_epoch(1);
    assert_eq!(log.leader_epoch(), 3);
    assert_eq!(log.end_offset_for_epoch(0), (0, 2));
    assert_eq!(log.end_offset_for_epoch(1), (0, 2));
    assert_eq!(log.end_offset_for_epoch(2), (0, 2));
    assert_eq!(log.end_offset_for_epoch(3), (3, 3));
    assert_eq!(log.end_offset_for_epoch(4), (-1, -1));
    assert_eq!(log.end_offset_for_epoch(-1), (-1, -1));
    let found = log.offset_for(OffsetSpec::Timestamp(NOW + 3), Isolation::ReadUncommitted).unwrap();
    assert_eq!(found.leader_epoch, 3);
    let fetched = log.read(0, 1000, Isolation::ReadUncommitted, true).unwrap();
    let epochs: Vec<_> = batches(&fetched.records).iter().map(|(header, _)| header.leader_epoch).collect();
    assert_eq!(epochs, [0, 3]);
}

#[test]
fn deleting_stays_within_the_log() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &timed(&[1, 2, 3]));
    assert_eq!(log.delete_records(4).unwrap_err().code(), 1);
    assert_eq!(log.delete_records(-2).unwrap_err().code(), 1);
    assert_eq!(log.delete_records(1).unwrap(), 1);
    assert_eq!(log.delete_records(0).unwrap(), 1);
    assert!(log.size_bytes() > 0, "the batch has records that are left");
    assert_eq!(log.delete_records(-1).unwrap(), 3);
    assert_eq!(log.size_bytes(), 0);
    assert_eq!(append(&mut log, &timed(&[4])), 3);
    log.set_config(LogConfig { delete: false, ..LogConfig::default() });
    assert_eq!(log.delete_records(4).unwrap_err().code(), 44);
}
