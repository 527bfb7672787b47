//! Random histories of producers that share transactional ids, are fenced, time out, and lose answers. Whatever happens:
//!
//! - only the producer that came last can open or end a transaction;
//! - a transaction that was opened is decided once, as its producer was told, and completed once;
//! - what is committed was asked for by the producer that opened it, under the epoch it opened it with;
//! - a broker that was killed at any point is the same again.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Init { slot: usize },
    GoOn { slot: usize },
    Add { slot: usize, partition: i32 },
    AddGroup { slot: usize },
    End { slot: usize, commit: bool },
    WriteMarkers,
    WriteMarkersTwice,
    Pass { millis: u64 },
    Restart,
}

const SLOTS: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let slot = 0..SLOTS;
    prop_oneof![
        2 => slot.clone().prop_map(|slot| Step::Init { slot }),
        1 => slot.clone().prop_map(|slot| Step::GoOn { slot }),
        6 => (slot.clone(), 0..3i32).prop_map(|(slot, partition)| Step::Add { slot, partition }),
        2 => slot.clone().prop_map(|slot| Step::AddGroup { slot }),
        5 => (slot, any::<bool>()).prop_map(|(slot, commit)| Step::End { slot, commit }),
        5 => Just(Step::WriteMarkers),
        1 => Just(Step::WriteMarkersTwice),
        1 => prop_oneof![1..100u64, 59_000..61_000u64].prop_map(|millis| Step::Pass { millis }),
        1 => Just(Step::Restart),
    ]
}

/// What a transaction ought to be, from the answers that producers were given.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    None,
    Open { producer: Producer, partitions: Vec<i32>, group: bool },
    Decided { producer: Producer, commit: bool, partitions: Vec<i32>, group: bool },
}

struct History {
    f: Fixture,
    /// What the producers believe to be, all under one transactional id.
    slots: [Option<Producer>; SLOTS],
    /// The producer that was given out last.
    latest: Option<Producer>,
    expected: Expected,
    /// Epochs that fenced a producer whose transaction was open.
    fencing: Vec<Producer>,
    /// How the last transaction ended, until the next begins.
    ended: Option<bool>,
}

impl History {
    fn run(&mut self, step: Step) {
        match step {
            Step::Init { slot } => {
                let answer = self.f.init();
                self.initialized(slot, None, answer);
            }
            Step::GoOn { slot } => {
                let Some(current) = self.slots[slot] else { return };
                let answer = self.f.go_on(current);
                if answer.is_ok() {
                    assert!(self.latest.is_some_and(|latest| latest.id == current.id));
                }
                self.initialized(slot, Some(current), answer);
            }
            Step::Add { slot, partition } => {
                let Some(producer) = self.slots[slot] else { return };
                let code = self.f.add(producer, partition);
                self.added(producer, code, Some(partition));
            }
            Step::AddGroup { slot } => {
                let Some(producer) = self.slots[slot] else { return };
                let code = self.f.add_group(producer, "g");
                self.added(producer, code, None);
            }
            Step::End { slot, commit } => {
                let Some(producer) = self.slots[slot] else { return };
                let code = self.f.end(producer, commit);
                self.end(producer, commit, code);
            }
            Step::WriteMarkers => self.write_markers(1),
            Step::WriteMarkersTwice => self.write_markers(2),
            Step::Pass { millis } => {
                self.f.pass(millis);
                self.note_fencing();
            }
            Step::Restart => {
                self.f.restart(10);
                let is_decided = matches!(self.expected, Expected::Decided { .. });
                assert_eq!(self.f.markers.len(), usize::from(is_decided), "markers are asked for again");
            }
        }
        self.check();
    }

    fn initialized(&mut self, slot: usize, current: Option<Producer>, answer: Result<Producer, ErrorCode>) {
        match answer {
            Ok(producer) => {
                assert_eq!(self.expected, Expected::None, "nobody is let in before the end is written");
                let is_retry = self.latest == Some(producer);
                let is_newer = self
                    .latest
                    .is_none_or(|latest| (producer.id, producer.epoch) > (latest.id, latest.epoch));
                assert!(is_retry || is_newer, "a producer was given out again");
                let of_itself = current.is_some_and(|current| bumped(current) == producer);
                let fenced_other = self.fencing.contains(&producer) && !of_itself;
                assert!(!fenced_other, "the epoch of a fencing was given to another");
                if !is_retry {
                    self.ended = None;
                }
                self.latest = Some(producer);
                self.slots[slot] = Some(producer);
            }
            Err(ErrorCode::ConcurrentTransactions) => self.note_fencing(),
            Err(error) => assert_eq!(error, ErrorCode::ProducerFenced),
        }
    }

    /// An open transaction may have been aborted on behalf of another.
    fn note_fencing(&mut self) {
        if let Expected::Open { producer, partitions, group } = &self.expected
            && self.f.state() == TransactionState::PrepareAbort
        {
            let (producer, partitions, group) = (bumped(*producer), partitions.clone(), *group);
            self.expected = Expected::Decided { producer, commit: false, partitions, group };
            self.latest = Some(producer);
            self.fencing.push(producer);
        }
    }

    fn added(&mut self, producer: Producer, code: ErrorCode, partition: Option<i32>) {
        if !code.is_none() {
            return;
        }
        assert_eq!(self.latest, Some(producer), "a fenced producer was let in");
        self.ended = None;
        if self.expected == Expected::None {
            self.expected = Expected::Open { producer, partitions: Vec::new(), group: false };
        }
        let Expected::Open { partitions, group, .. } = &mut self.expected else {
            panic!("something was added to a transaction that is decided");
        };
        partitions.extend(partition);
        partitions.sort_unstable();
        partitions.dedup();
        *group |= partition.is_none();
    }

    fn end(&mut self, producer: Producer, commit: bool, code: ErrorCode) {
        match (&self.expected, code) {
            (Expected::Open { producer: opened_by, partitions, group }, ErrorCode::None) => {
                assert_eq!(*opened_by, producer, "another producer ended the transaction");
                let (partitions, group) = (partitions.clone(), *group);
                self.expected = Expected::Decided { producer, commit, partitions, group };
            }
            (Expected::None, ErrorCode::None) => {
                assert_eq!(self.latest, Some(producer));
                assert_eq!(self.ended, Some(commit), "an end was confirmed that was none");
            }
            (Expected::Decided { .. }, code) => assert!(!code.is_none(), "it was decided twice"),
            (_, code) => {
                let refused_rightly = self.latest != Some(producer) || code == ErrorCode::InvalidTxnState;
                assert!(refused_rightly, "the producer could not end its transaction: {code:?}");
            }
        }
    }

    fn write_markers(&mut self, times: usize) {
        let markers = std::mem::take(&mut self.f.markers);
        assert!(markers.len() <= 1);
        for markers in &markers {
            let Expected::Decided { producer, commit, partitions, group } = self.expected.clone() else {
                panic!("markers without a decision");
            };
            assert_eq!((markers.producer, markers.commit), (producer, commit));
            let written: Vec<i32> = markers.partitions.iter().map(|of| of.partition).collect();
            assert_eq!((written, !markers.groups.is_empty()), (partitions, group));
            for time in 0..times {
                let mut out = Effects::new();
                self.f.transactions.markers_written(self.f.now, markers, &mut out);
                assert_eq!(out.records.len(), usize::from(time == 0), "it is completed once");
                self.f.take(out);
            }
            self.expected = Expected::None;
            self.ended = Some(commit);
        }
    }

    fn check(&self) {
        let Ok(described) = self.f.transactions.describe("x") else { return };
        let state = match &self.expected {
            Expected::Open { .. } => Some(TransactionState::Ongoing),
            Expected::Decided { commit: true, .. } => Some(TransactionState::PrepareCommit),
            Expected::Decided { commit: false, .. } => Some(TransactionState::PrepareAbort),
            Expected::None => None,
        };
        match state {
            Some(state) => assert_eq!(described.state, state),
            None => assert!(described.partitions.is_empty() && described.groups.is_empty()),
        }
        assert_eq!(Some(described.producer), self.latest);
        assert_eq!(
            self.f.transactions.next_deadline().is_some(),
            described.state == TransactionState::Ongoing,
            "an open transaction, and no other, times out"
        );
        let snapshot = self.f.transactions.snapshot();
        for records in [&self.f.journal, &snapshot] {
            assert!(restored(&self.f, records).snapshot() == snapshot, "the journal says something else");
        }
    }
}

fn restored(f: &Fixture, records: &[Record]) -> Transactions {
    let settings = Settings { transactions: f.settings.clone(), ..Settings::default() };
    let records = records.iter().map(|record| Record::decode(record.encode()).unwrap());
    Coordinators::restore(settings, f.now, records, &mut Effects::new()).transactions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_the_rules(steps in prop::collection::vec(step(), 1..80)) {
        let mut history = History {
            f: Fixture::new(),
            slots: [None; SLOTS],
            latest: None,
            expected: Expected::None,
            fencing: Vec::new(),
            ended: None,
        };
        for step in steps {
            history.run(step);
        }
        // Whatever is open times out, and whatever is decided is completed.
        history.run(Step::Pass { millis: 60_000 });
        history.run(Step::WriteMarkers);
        prop_assert_eq!(history.expected, Expected::None);
    }
}
