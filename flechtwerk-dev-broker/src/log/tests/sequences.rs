//! Sequence numbers and epochs, against a model that keeps everything.

use proptest::prelude::*;

use super::*;
use crate::log::{AppendError, LogConfig};

/// A producer as the rules describe it: all batches of its epoch, as (first sequence, last sequence, first offset).
#[derive(Debug, Default)]
struct Model {
    epoch: i16,
    sent: Vec<(i32, i32, i64)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Fresh,
    Repeated(i64),
    OutOfOrder,
    Fenced,
}

fn wrapping(sequence: i64) -> i32 {
    i32::try_from(sequence.rem_euclid(1 << 31)).unwrap()
}

impl Model {
    fn send(&mut self, epoch: i16, first: i32, count: i32, offset: i64, known: bool) -> Outcome {
        let last = wrapping(i64::from(first) + i64::from(count) - 1);
        if known {
            if epoch < self.epoch {
                return Outcome::Fenced;
            }
            if epoch == self.epoch {
                let five = self.sent.iter().rev().take(5);
                if let Some((_, _, offset)) = five.rev().find(|(a, b, _)| (*a, *b) == (first, last)) {
                    return Outcome::Repeated(*offset);
                }
                let next = self.sent.last().map_or(0, |(_, last, _)| wrapping(i64::from(*last) + 1));
                if first != next {
                    return Outcome::OutOfOrder;
                }
            } else if first != 0 {
                return Outcome::OutOfOrder;
            }
        }
        if epoch != self.epoch {
            *self = Self { epoch, sent: Vec::new() };
        }
        self.sent.push((first, last, offset));
        Outcome::Fresh
    }
}

fn send(log: &mut PartitionLog, producer: (i64, i16, i32), count: i32) -> Outcome {
    let records = (0..count).map(|_| record("k", "v")).collect();
    match log.append(Batch::idempotent(producer, records).bytes(), NOW) {
        Ok(appended) if appended.duplicate => Outcome::Repeated(appended.base_offset),
        Ok(_) => Outcome::Fresh,
        Err(AppendError::OutOfOrderSequence { .. }) => Outcome::OutOfOrder,
        Err(AppendError::InvalidProducerEpoch { .. }) => Outcome::Fenced,
        Err(error) => panic!("{error}"),
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn sequences_follow_the_rules(
        start in prop_oneof![Just(0), Just(i32::MAX - 10), Just(i32::MAX), 0..=i32::MAX],
        sends in proptest::collection::vec((0..2_i16, -14..3_i64, 1..4_i32, any::<bool>()), 1..40),
    ) {
        let mut log = PartitionLog::in_memory(LogConfig::default());
        let mut model = Model::default();
        let mut epoch = 0;
        for (index, (bump, distance, count, in_order)) in sends.into_iter().enumerate() {
            // Mostly in order, otherwise somewhere near: repeated, overlapping, or with a gap.
            let next = model.sent.last().map_or(i64::from(start), |(_, last, _)| i64::from(*last) + 1);
            let (epoch_sent, first) = match (index, in_order) {
                (0, _) => (0, start),
                (_, true) => (epoch, wrapping(next)),
                (_, false) => (epoch + bump - i16::from(distance == -14), wrapping(next + distance)),
            };
            if epoch_sent < 0 {
                continue;
            }
            let offset = log.high_watermark();
            let expected = model.send(epoch_sent, first, count, offset, index > 0);
            let outcome = send(&mut log, (1, epoch_sent, first), count);
            prop_assert_eq!(&outcome, &expected, "{} {}", epoch_sent, first);
            let grown = if outcome == Outcome::Fresh { i64::from(count) } else { 0 };
            prop_assert_eq!(log.high_watermark(), offset + grown);
            epoch = model.epoch;
        }
    }
}

#[test]
fn the_last_five_batches_are_recognized() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    for sequence in 0..7 {
        assert_eq!(send(&mut log, (1, 0, sequence * 2), 2), Outcome::Fresh);
    }
    for sequence in 2..7 {
        assert_eq!(send(&mut log, (1, 0, sequence * 2), 2), Outcome::Repeated(i64::from(sequence) * 2));
    }
    assert_eq!(send(&mut log, (1, 0, 2), 2), Outcome::OutOfOrder);
    // The same first number with another count is no repetition.
    assert_eq!(send(&mut log, (1, 0, 12), 1), Outcome::OutOfOrder);
}

#[test]
fn an_unknown_producer_may_begin_anywhere() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    assert_eq!(send(&mut log, (1, 3, 500), 1), Outcome::Fresh);
    assert_eq!(send(&mut log, (1, 3, 502), 1), Outcome::OutOfOrder);
    assert_eq!(send(&mut log, (1, 4, 1), 1), Outcome::OutOfOrder);
    assert_eq!(send(&mut log, (1, 4, 0), 1), Outcome::Fresh);
    assert_eq!(send(&mut log, (1, 3, 501), 1), Outcome::Fenced);
}

#[test]
fn a_marker_raises_the_epoch() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &Batch::transactional((1, 0, 0), vec![record("k", "v")]));
    log.append_marker(1, 1, false, 5, NOW).unwrap();
    assert_eq!(send(&mut log, (1, 0, 1), 1), Outcome::Fenced);
    assert!(matches!(log.append_marker(1, 0, true, 5, NOW), Err(AppendError::InvalidProducerEpoch { .. })));
    assert!(matches!(log.append_marker(1, 1, true, 4, NOW), Err(AppendError::CoordinatorFenced { .. })));
    let producer = log.producer(1).unwrap();
    assert_eq!((producer.producer_epoch, producer.last_sequence, producer.coordinator_epoch), (1, -1, 5));
    // Kafka's rule for an epoch that has no batches yet.
    assert_eq!(send(&mut log, (1, 1, 1), 1), Outcome::OutOfOrder);
    assert_eq!(send(&mut log, (1, 1, 0), 1), Outcome::Fresh);
}

#[test]
fn a_producer_may_not_leave_its_transaction() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &Batch::transactional((1, 0, 0), vec![record("k", "v")]));
    let outside = Batch::idempotent((1, 0, 1), vec![record("k", "v")]);
    let error = log.append(outside.bytes(), NOW).unwrap_err();
    assert!(matches!(error, AppendError::InvalidTxnState { producer_id: 1 }));
    assert_eq!(error.code(), 48);
    log.append_marker(1, 0, true, 0, NOW).unwrap();
    assert_eq!(append(&mut log, &outside), 2);
}

#[test]
fn silent_producers_are_forgotten() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    append(&mut log, &Batch::idempotent((1, 0, 0), vec![record("k", "v")]));
    append(&mut log, &Batch::transactional((2, 0, 0), vec![record("k", "v")]));
    log.expire_producers(NOW);
    assert_eq!(log.producers().len(), 2);
    log.expire_producers(NOW + 1);
    let left: Vec<_> = log.producers().iter().map(|producer| producer.producer_id).collect();
    assert_eq!(left, [2]);
}
