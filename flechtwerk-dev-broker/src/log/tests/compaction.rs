//! Compaction: what stays and what goes, by example and by random histories.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::log::{CompactOptions, LogConfig};

const RETENTION: i64 = 1000;

fn compacted_log() -> PartitionLog {
    PartitionLog::in_memory(LogConfig {
        compact: true,
        delete_retention_ms: RETENTION,
        ..LogConfig::default()
    })
}

/// Each batch as (base offset, last offset, records, control).
fn shape(log: &PartitionLog) -> Vec<(i64, i64, i32, bool)> {
    let bytes = Bytes::from(all_bytes(log));
    let shape = batches(&bytes)
        .into_iter()
        .map(|(header, _)| (header.base_offset, header.last_offset(), header.count, header.is_control()));
    shape.collect()
}

fn compact(log: &mut PartitionLog, now: i64) {
    log.compact(now, CompactOptions::default()).unwrap();
}

#[test]
fn the_newest_value_of_each_key_stays_at_its_offset() {
    for compression in [Compression::None, Compression::Gzip, Compression::Snappy] {
        let mut log = compacted_log();
        append(
            &mut log,
            &Batch {
                compression,
                ..Batch::plain(vec![record("a", "1"), record("b", "1"), record("c", "1")])
            },
        );
        append(&mut log, &Batch { compression, ..Batch::plain(vec![record("a", "2"), record("b", "2")]) });
        append(&mut log, &Batch::plain(vec![record("b", "3")]));
        append(&mut log, &Batch::plain(vec![record("c", "active")]));
        let report = log.compact(NOW, CompactOptions::default()).unwrap();
        assert_eq!(report.records_removed, 3);
        assert!(report.bytes_after < report.bytes_before);
        assert_eq!(shape(&log), [(0, 2, 1, false), (3, 4, 1, false), (5, 5, 1, false), (6, 6, 1, false)]);
        let seen = consume(&log, 0, Isolation::ReadCommitted, 1000);
        let expected =
            [(2, record("c", "1")), (3, record("a", "2")), (5, record("b", "3")), (6, record("c", "active"))];
        assert_eq!(seen, expected);
    }
}

/// `segment.ms` and `segment.bytes` begin a new segment with the batch that does not fit.
#[test]
fn the_active_segment_is_left_alone() {
    let with = |segment_ms: i64, segment_bytes: usize, timestamp: i64| {
        let mut log = compacted_log();
        log.config.segment_ms = segment_ms;
        log.config.segment_bytes = segment_bytes;
        for at in [0, 50, 100, timestamp] {
            append(&mut log, &Batch::plain(vec![Sent { timestamp: NOW + at, ..record("a", "x") }]));
        }
        log
    };
    assert_eq!(with(100, usize::MAX, 100).active_segment(), 0);
    assert_eq!(with(100, usize::MAX, 101).active_segment(), 3);
    let size = with(100, usize::MAX, 101).size_bytes();
    assert_eq!(with(i64::MAX, size, 101).active_segment(), 0);
    let mut log = with(i64::MAX, size - 1, 101);
    assert_eq!(log.active_segment(), 3);
    // The settings of the time at which a batch comes count.
    log.config.segment_bytes = usize::MAX;
    assert_eq!(log.active_segment(), 3);
    let active_from = Some(log.active_segment());
    assert_eq!(log.compact(NOW, CompactOptions { active_from }).unwrap().records_removed, 2);
    assert_eq!(compacted_log().active_segment(), 0, "an empty log");
}

/// What is deleted or compacted away makes room in the active segment, and does not move it.
#[test]
fn the_active_segment_stays_where_it_began() {
    let one = |value: &str| Batch::plain(vec![record("a", value)]);
    let size = {
        let mut log = compacted_log();
        append(&mut log, &one("x"));
        log.size_bytes()
    };
    let mut log = compacted_log();
    log.config.delete = true;
    log.config.segment_bytes = 3 * size;
    let append_some = |log: &mut PartitionLog, count: usize| {
        for _ in 0..count {
            append(log, &one("x"));
        }
    };
    append_some(&mut log, 6);
    assert_eq!(log.active_segment(), 3);
    log.delete_records(5).unwrap();
    append_some(&mut log, 2);
    assert_eq!(log.active_segment(), 3, "there was room for two");
    append_some(&mut log, 3);
    assert_eq!(log.active_segment(), 8);
    compact(&mut log, NOW);
    append_some(&mut log, 1);
    assert_eq!(log.active_segment(), 8, "there was room for one");
    append_some(&mut log, 1);
    assert_eq!(log.active_segment(), 12);
}

#[test]
fn a_tombstone_goes_after_its_retention() {
    let mut log = compacted_log();
    append(&mut log, &Batch::plain(vec![record("a", "1")]));
    append(&mut log, &Batch::plain(vec![tombstone("a")]));
    append(&mut log, &Batch::plain(vec![record("b", "1")]));
    append(&mut log, &Batch::plain(vec![record("c", "active")]));
    compact(&mut log, NOW);
    assert_eq!(consume(&log, 0, Isolation::ReadCommitted, 1000)[0], (1, tombstone("a")));
    compact(&mut log, NOW + RETENTION - 1);
    assert_eq!(shape(&log).len(), 3);
    compact(&mut log, NOW + RETENTION);
    assert_eq!(shape(&log), [(2, 2, 1, false), (3, 3, 1, false)]);
}

#[test]
fn an_open_transaction_stops_it() {
    let mut log = compacted_log();
    append(&mut log, &Batch::plain(vec![record("a", "1")]));
    append(&mut log, &Batch::transactional((1, 0, 0), vec![record("a", "2")]));
    append(&mut log, &Batch::plain(vec![record("a", "3")]));
    append(&mut log, &Batch::plain(vec![record("a", "4")]));
    compact(&mut log, NOW);
    assert_eq!(shape(&log).iter().map(|(base, ..)| *base).collect::<Vec<_>>(), [0, 1, 2, 3]);
    log.append_marker(1, 0, true, 0, NOW).unwrap();
    compact(&mut log, NOW);
    // The producer's batch keeps its sequence number without its record.
    assert_eq!(shape(&log), [(1, 1, 0, false), (3, 3, 1, false), (4, 4, 1, true)]);
}

#[test]
fn aborted_data_goes_before_its_marker() {
    let mut log = compacted_log();
    append(&mut log, &Batch::plain(vec![record("a", "1")]));
    append(&mut log, &Batch::transactional((1, 0, 0), vec![record("a", "2")]));
    log.append_marker(1, 0, false, 0, NOW).unwrap();
    append(&mut log, &Batch::transactional((1, 0, 1), vec![record("b", "1")]));
    log.append_marker(1, 0, true, 0, NOW).unwrap();
    append(&mut log, &Batch::plain(vec![record("c", "1")]));
    append(&mut log, &Batch::plain(vec![record("d", "1")]));
    let seen = |log: &PartitionLog| consume(log, 0, Isolation::ReadCommitted, 1000);
    let left = [(0, record("a", "1")), (3, record("b", "1")), (5, record("c", "1")), (6, record("d", "1"))];
    // The data goes; its marker, met with data still there, stays and is listed.
    compact(&mut log, NOW);
    let with_marker: Vec<_> = shape(&log).iter().map(|(base, ..)| *base).collect();
    assert_eq!(with_marker, [0, 2, 3, 4, 5, 6]);
    assert_eq!(log.state.transactions.aborted().len(), 1);
    assert_eq!(seen(&log), left);
    // Without data it gets a delete horizon and is listed no more.
    compact(&mut log, NOW);
    assert_eq!(shape(&log).len(), 6);
    assert!(log.state.transactions.aborted().is_empty());
    assert_eq!(seen(&log), left);
    compact(&mut log, NOW + RETENTION);
    assert_eq!(shape(&log).iter().map(|(base, ..)| *base).collect::<Vec<_>>(), [0, 3, 4, 5, 6]);
    assert_eq!(seen(&log), left);
}

#[test]
fn a_hole_is_left_at_the_end() {
    let mut log = compacted_log();
    append(&mut log, &Batch::plain(vec![record("a", "1")]));
    append(&mut log, &Batch::transactional((1, 0, 0), vec![record("b", "1"), record("b", "2")]));
    log.append_marker(1, 0, false, 0, NOW).unwrap();
    compact(&mut log, NOW);
    assert_eq!(shape(&log), [(0, 0, 1, false), (1, 2, 0, false), (3, 3, 1, true)]);
    assert_eq!(consume(&log, 0, Isolation::ReadCommitted, 1000), [(0, record("a", "1"))]);
    assert!(consume(&log, 2, Isolation::ReadCommitted, 1000).is_empty());
    assert_eq!((log.high_watermark(), log.last_stable_offset()), (4, 4));
    // The next sequence number follows the one that the empty batch keeps.
    let next = Batch::transactional((1, 0, 2), vec![record("b", "3")]);
    assert_eq!(append(&mut log, &next), 4);
}

#[test]
fn the_end_of_a_pass_stays() {
    let mut log = compacted_log();
    append(&mut log, &Batch::plain(vec![record("a", "1")]));
    append(&mut log, &Batch::plain(vec![tombstone("a")]));
    append(&mut log, &Batch::plain(vec![record("b", "active")]));
    compact(&mut log, NOW);
    compact(&mut log, NOW + RETENTION);
    assert_eq!(shape(&log), [(1, 1, 0, false), (2, 2, 1, false)]);
    append(&mut log, &Batch::plain(vec![record("c", "active")]));
    compact(&mut log, NOW + RETENTION);
    assert_eq!(shape(&log), [(2, 2, 1, false), (3, 3, 1, false)]);
}

#[test]
fn opaque_batches_stay() {
    let mut log = compacted_log();
    append(&mut log, &Batch { compression: Compression::Zstd, ..Batch::plain(vec![record("a", "1")]) });
    append(&mut log, &Batch::plain(vec![record("a", "2")]));
    append(&mut log, &Batch::plain(vec![record("b", "2")]));
    let report = log.compact(NOW, CompactOptions::default()).unwrap();
    assert_eq!((report.opaque_batches, report.records_removed), (1, 0));
    assert_eq!(shape(&log).len(), 3);
}

#[test]
fn the_active_segment_begins_where_it_is_told() {
    let mut log = compacted_log();
    for _ in 0..4 {
        append(&mut log, &Batch::plain(vec![record("a", "1")]));
    }
    log.compact(NOW, CompactOptions { active_from: Some(2) }).unwrap();
    assert_eq!(shape(&log).iter().map(|(base, ..)| *base).collect::<Vec<_>>(), [1, 2, 3]);
    log.compact(NOW, CompactOptions { active_from: Some(i64::MAX) }).unwrap();
    assert_eq!(shape(&log).iter().map(|(base, ..)| *base).collect::<Vec<_>>(), [3]);
}

#[test]
fn a_log_at_rest_is_left_alone() {
    let mut log = compacted_log();
    append(&mut log, &Batch { compression: Compression::Zstd, ..Batch::plain(vec![record("z", "1")]) });
    append(&mut log, &Batch::plain(vec![record("a", "1")]));
    append(&mut log, &Batch::plain(vec![tombstone("a")]));
    append(&mut log, &Batch::plain(vec![record("b", "1")]));
    append(&mut log, &Batch::plain(vec![record("b", "2")]));
    // The batch that can't be opened is met by each compaction that looks through the log.
    let mut looks = |now| log.compact(now, CompactOptions::default()).unwrap().opaque_batches;
    let times =
        [NOW, NOW, NOW + 1, NOW + RETENTION - 1, NOW + RETENTION, NOW + RETENTION, NOW + 9 * RETENTION];
    assert_eq!(times.map(&mut looks), [1, 1, 0, 0, 1, 1, 0]);
    append(&mut log, &Batch::plain(vec![record("b", "3")]));
    assert_eq!(log.compact(NOW, CompactOptions::default()).unwrap().records_removed, 1);
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send { producer: i64, transactional: bool, keys: Vec<(u8, bool)>, compression: u8 },
    End { producer: i64, commit: bool },
    Delete { to: prop::sample::Index },
    Compact { later: i64, active: Option<prop::sample::Index> },
}

pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    let keys = proptest::collection::vec((0..5_u8, prop::bool::weighted(0.2)), 1..4);
    prop_oneof![
        8 => (0..3_i64, prop::bool::weighted(0.7), keys, 0..4_u8).prop_map(
            |(producer, transactional, keys, compression)| Step::Send { producer, transactional, keys, compression }
        ),
        4 => (0..3_i64, any::<bool>()).prop_map(|(producer, commit)| Step::End { producer, commit }),
        1 => any::<prop::sample::Index>().prop_map(|to| Step::Delete { to }),
        2 => (0..RETENTION, proptest::option::of(any::<prop::sample::Index>()))
            .prop_map(|(later, active)| Step::Compact { later, active }),
    ]
}

/// What a history needs to know to go on.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) now: i64,
    sequences: BTreeMap<i64, i32>,
    count: usize,
}

impl Default for History {
    fn default() -> Self {
        Self { now: NOW, sequences: BTreeMap::new(), count: 0 }
    }
}

impl History {
    /// Applies a step; `compact` is called where the log has to be compacted.
    pub(crate) fn apply(
        &mut self,
        log: &mut PartitionLog,
        step: &Step,
        compact: impl FnOnce(&mut PartitionLog, i64, CompactOptions),
    ) {
        match step {
            Step::Send { producer, transactional, keys, compression } => {
                self.count += 1;
                let open = log.producer(*producer).is_some_and(|state| state.current_txn_start_offset >= 0);
                let records: Vec<_> = keys
                    .iter()
                    .map(|(key, tombstone)| Sent {
                        key: Some(vec![*key]),
                        value: (!tombstone).then(|| format!("value {}", self.count).into_bytes()),
                        timestamp: NOW + i64::from(*key),
                    })
                    .collect();
                let sequence = self.sequences.entry(*producer).or_default();
                let compression = match compression {
                    0 => Compression::Gzip,
                    1 => Compression::Snappy,
                    _ => Compression::None,
                };
                let producer = (*producer, 0, *sequence);
                let transactional = *transactional || open;
                *sequence += i32::try_from(records.len()).unwrap();
                append(log, &Batch { producer, transactional, compression, records });
            }
            Step::End { producer, commit } => {
                log.append_marker(*producer, 0, *commit, 0, self.now).unwrap();
            }
            Step::Delete { to } => {
                let to = to.index(usize::try_from(log.high_watermark()).unwrap() + 1);
                log.delete_records(i64::try_from(to).unwrap()).unwrap();
            }
            Step::Compact { later, active } => {
                self.now += later;
                let end = usize::try_from(log.high_watermark()).unwrap();
                let active_from = active.map(|active| i64::try_from(active.index(end + 1)).unwrap());
                compact(log, self.now, CompactOptions { active_from });
            }
        }
    }
}

/// The newest value of each key; a tombstone is none.
fn latest(seen: &[Seen]) -> BTreeMap<Vec<u8>, (i64, Sent)> {
    let mut latest = BTreeMap::new();
    for (offset, sent) in seen {
        let key = sent.key.clone().unwrap();
        if sent.value.is_some() {
            latest.insert(key, (*offset, sent.clone()));
        } else {
            latest.remove(&key);
        }
    }
    latest
}

fn check_compaction(log: &mut PartitionLog, now: i64, options: CompactOptions) {
    let start = log.log_start_offset();
    let before = [Isolation::ReadCommitted, Isolation::ReadUncommitted]
        .map(|isolation| consume(log, start, isolation, 500));
    let (end, stable, producers) = (log.high_watermark(), log.last_stable_offset(), log.producers());
    log.compact(now, options).unwrap();
    assert_eq!((log.high_watermark(), log.last_stable_offset()), (end, stable));
    assert_eq!(log.producers(), producers);
    let after = [Isolation::ReadCommitted, Isolation::ReadUncommitted]
        .map(|isolation| consume(log, start, isolation, 500));
    assert_eq!(latest(&after[0]), latest(&before[0]));
    for (after, before) in after.iter().zip(&before) {
        assert!(after.is_sorted_by_key(|(offset, _)| *offset));
        assert!(after.iter().all(|seen| before.contains(seen)), "nothing new may appear");
    }
    let limit = options.active_from.unwrap_or(i64::MAX).min(stable);
    let untouched =
        |seen: &[Seen]| seen.iter().filter(|(offset, _)| *offset >= limit).cloned().collect::<Vec<_>>();
    assert_eq!(untouched(&after[1]), untouched(&before[1]));
    // Wherever a reader begins, it sees the rest of the same.
    for from in start..=end {
        let rest: Vec<_> = after[0].iter().filter(|(offset, _)| *offset >= from).cloned().collect();
        assert_eq!(consume(log, from, Isolation::ReadCommitted, 200), rest, "from {from}");
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn compaction_loses_nothing_that_counts(steps in proptest::collection::vec(any_step(), 1..60)) {
        let mut log = compacted_log();
        let mut history = History::default();
        for step in &steps {
            history.apply(&mut log, step, check_compaction);
        }
        // Once all transactions are over and all horizons have passed, each key is there at most once.
        for producer in 0..3 {
            log.append_marker(producer, 0, false, 0, history.now).unwrap();
        }
        for round in 1..4 {
            check_compaction(&mut log, history.now + round * RETENTION, CompactOptions::default());
        }
        let seen = consume(&log, log.log_start_offset(), Isolation::ReadUncommitted, 500);
        prop_assert_eq!(latest(&seen).len(), seen.len(), "{:?}", seen.iter().map(|(offset, _)| offset).collect::<Vec<_>>());
    }
}
