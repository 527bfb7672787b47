//! What readers see of interleaved transactions, against a model that knows how each of them ended.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::log::LogConfig;

/// One step of a history with four producers.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send { producer: usize, count: usize, transactional: bool },
    End { producer: usize, commit: bool },
    Delete { to: prop::sample::Index },
}

pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_usize, 1..4_usize, prop::bool::weighted(0.8))
            .prop_map(|(producer, count, transactional)| Step::Send { producer, count, transactional }),
        3 => (0..4_usize, any::<bool>()).prop_map(|(producer, commit)| Step::End { producer, commit }),
        1 => any::<prop::sample::Index>().prop_map(|to| Step::Delete { to }),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Committed,
    Aborted,
}

/// All records ever written, each with the fate of its transaction.
#[derive(Debug, Default)]
struct Model {
    records: BTreeMap<i64, (Sent, usize)>,
    fates: Vec<(i64, Fate)>,
    open: BTreeMap<usize, usize>,
    sequences: [i32; 4],
    end: i64,
    start: i64,
}

impl Model {
    fn stable(&self) -> i64 {
        let first = self.fates.iter().filter(|(_, fate)| *fate == Fate::Open).map(|(first, _)| *first).min();
        first.unwrap_or(self.end)
    }

    fn committed(&self, from: i64) -> Vec<Seen> {
        let visible = self.records.range(from..self.stable().max(from));
        let kept = visible.filter(|(_, (_, fate))| self.fates[*fate].1 == Fate::Committed);
        kept.map(|(offset, (sent, _))| (*offset, sent.clone())).collect()
    }
}

/// Applies a step to a log and the model.
fn apply(log: &mut PartitionLog, model: &mut Model, step: &Step) {
    match *step {
        Step::Send { producer, count, transactional } => {
            let transactional = transactional || model.open.contains_key(&producer);
            let records: Vec<_> =
                (0..count).map(|number| record("k", &format!("{} {number}", model.end))).collect();
            let id = (i64::try_from(producer).unwrap(), 0, model.sequences[producer]);
            let batch = if transactional {
                Batch::transactional(id, records.clone())
            } else {
                Batch::idempotent(id, records.clone())
            };
            let base = append(log, &batch);
            assert_eq!(base, model.end);
            let fate = match model.open.get(&producer) {
                Some(fate) => *fate,
                None => {
                    let fate = if transactional { Fate::Open } else { Fate::Committed };
                    model.fates.push((base, fate));
                    if transactional {
                        model.open.insert(producer, model.fates.len() - 1);
                    }
                    model.fates.len() - 1
                }
            };
            model.records.extend((base..).zip(records.into_iter().map(|sent| (sent, fate))));
            model.sequences[producer] += i32::try_from(count).unwrap();
            model.end += i64::try_from(count).unwrap();
        }
        Step::End { producer, commit } => {
            log.append_marker(i64::try_from(producer).unwrap(), 0, commit, 0, NOW).unwrap();
            if let Some(fate) = model.open.remove(&producer) {
                model.fates[fate].1 = if commit { Fate::Committed } else { Fate::Aborted };
            }
            model.end += 1;
        }
        Step::Delete { to } => {
            let to = i64::try_from(to.index(usize::try_from(model.end).unwrap() + 1)).unwrap();
            model.start = model.start.max(to);
            assert_eq!(log.delete_records(to).unwrap(), model.start);
        }
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn every_reader_sees_what_the_model_says(
        steps in proptest::collection::vec(any_step(), 1..50),
        max_bytes in 1..1500_usize,
    ) {
        let mut log = PartitionLog::in_memory(LogConfig::default());
        let mut model = Model::default();
        for step in &steps {
            apply(&mut log, &mut model, step);
            prop_assert_eq!(log.high_watermark(), model.end);
            prop_assert_eq!(log.log_start_offset(), model.start);
            prop_assert_eq!(log.last_stable_offset(), model.stable());
        }
        for from in model.start..=model.end {
            let committed = consume(&log, from, Isolation::ReadCommitted, max_bytes);
            prop_assert_eq!(committed, model.committed(from), "from {}", from);
            let all = consume(&log, from, Isolation::ReadUncommitted, max_bytes);
            let expected = model.records.range(from..).map(|(offset, (sent, _))| (*offset, sent.clone()));
            prop_assert_eq!(all, expected.collect::<Vec<_>>());
        }
        prop_assert!(log.read(model.end + 1, 1, Isolation::ReadCommitted, true).is_err());
        if model.start > 0 {
            prop_assert!(log.read(model.start - 1, 1, Isolation::ReadCommitted, true).is_err());
        }
    }
}

#[test]
fn a_later_commit_waits_for_an_earlier_transaction() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &Batch::transactional((1, 0, 0), vec![record("a", "1")]));
    append(&mut log, &Batch::transactional((2, 0, 0), vec![record("b", "2")]));
    log.append_marker(2, 0, true, 0, NOW).unwrap();
    assert_eq!((log.last_stable_offset(), log.high_watermark()), (0, 3));
    assert!(consume(&log, 0, Isolation::ReadCommitted, 1000).is_empty());
    log.append_marker(1, 0, false, 0, NOW).unwrap();
    assert_eq!(consume(&log, 0, Isolation::ReadCommitted, 1000), [(1, record("b", "2"))]);
    assert_eq!(log.read(0, 1000, Isolation::ReadCommitted, true).unwrap().aborted, [(1, 0)]);
    assert!(log.read(0, 1000, Isolation::ReadUncommitted, true).unwrap().aborted.is_empty());
}

#[test]
fn a_batch_comes_whole_from_an_offset_inside_it() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &Batch::plain(vec![record("a", "1"), record("b", "2"), record("c", "3")]));
    append(&mut log, &Batch::plain(vec![record("d", "4")]));
    let fetched = log.read(2, 1, Isolation::ReadUncommitted, true).unwrap();
    let found = batches(&fetched.records);
    assert_eq!(found.iter().map(|(header, _)| header.base_offset).collect::<Vec<_>>(), [0]);
    assert!(log.read(2, 1, Isolation::ReadUncommitted, false).unwrap().records.is_empty());
    let size = log.size_bytes();
    assert_eq!(log.read(2, size, Isolation::ReadUncommitted, false).unwrap().records.len(), size);
    assert_eq!(log.available_bytes(2, Isolation::ReadUncommitted), size);
    assert_eq!(log.available_bytes(4, Isolation::ReadUncommitted), 0);
}

#[test]
fn reading_goes_on_over_full_chunks() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    let value = "v".repeat(1000);
    let batch = Batch::plain((0..100).map(|_| record("k", &value)).collect());
    for _ in 0..40 {
        append(&mut log, &batch);
    }
    for max_bytes in [1, 70_000, 1_048_576, usize::MAX] {
        let offsets: Vec<_> =
            consume(&log, 5, Isolation::ReadCommitted, max_bytes).iter().map(|(o, _)| *o).collect();
        assert!(offsets.iter().copied().eq(5..4000));
    }
    let available = log.available_bytes(250, Isolation::ReadUncommitted);
    assert_eq!(available, log.size_bytes() / 40 * 38);
    assert_eq!(log.delete_records(3050).unwrap(), 3050);
    assert_eq!(log.size_bytes(), batch.bytes().len() * 10);
}

#[test]
fn the_aborted_transactions_are_those_of_the_answer() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &Batch::transactional((1, 0, 0), vec![record("a", "1")]));
    log.append_marker(1, 0, false, 0, NOW).unwrap();
    append(&mut log, &Batch::transactional((2, 0, 0), vec![record("b", "1")]));
    append(&mut log, &Batch::transactional((1, 0, 1), vec![record("c", "1")]));
    log.append_marker(1, 0, false, 0, NOW).unwrap();
    log.append_marker(2, 0, false, 0, NOW).unwrap();
    let aborted =
        |from, max_bytes| log.read(from, max_bytes, Isolation::ReadCommitted, true).unwrap().aborted;
    assert_eq!(aborted(0, 10_000), [(1, 0), (1, 3), (2, 2)]);
    assert_eq!(aborted(0, 1), [(1, 0)]);
    assert_eq!(aborted(1, 1), [(1, 0)], "up to its marker");
    assert_eq!(aborted(2, 1), [(2, 2)]);
    assert_eq!(aborted(3, 1), [(1, 3), (2, 2)]);
    assert_eq!(aborted(5, 1), [(2, 2)]);
    assert!(aborted(6, 10_000).is_empty());
}

#[test]
fn the_rest_of_a_chunk_alone_is_no_answer() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    let batch = Batch::plain((0..100).map(|_| record("k", &"v".repeat(100))).collect());
    for _ in 0..300 {
        append(&mut log, &batch);
    }
    let size = batch.bytes().len();
    for number in 0..300_usize {
        let from = i64::try_from(number * 100).unwrap();
        let found = log.read(from, 150_000, Isolation::ReadUncommitted, true).unwrap().records.len();
        let possible = ((300 - number) * size).min(150_000 / size * size);
        assert!(
            found == possible || (65_536..possible).contains(&found),
            "{found} of {possible} from {from}"
        );
        assert_eq!(
            batches(&log.read(from, 150_000, Isolation::ReadUncommitted, true).unwrap().records)[0]
                .0
                .base_offset,
            from
        );
    }
}
