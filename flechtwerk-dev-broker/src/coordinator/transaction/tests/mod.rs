//! The rules of transactions by name, and histories of random calls.

mod durability;
mod epochs;
mod histories;
mod lifecycle;
mod queries;

use super::*;
use crate::coordinator::{Coordinators, Settings};

const TIMEOUT: i32 = 60_000;

/// A transaction coordinator with a clock, that keeps all markers and the journal.
struct Fixture {
    transactions: Transactions,
    settings: TransactionSettings,
    now: Now,
    /// Markers to be written.
    markers: Vec<WriteMarkers>,
    journal: Vec<Record>,
}

impl Fixture {
    fn new() -> Self {
        Self::with(TransactionSettings { first_producer_id: 1_000, ..TransactionSettings::default() })
    }

    fn with(settings: TransactionSettings) -> Self {
        Self {
            transactions: Transactions::new(settings.clone()),
            settings,
            now: Now { since_start: Millis(1_000), wall: 1_700_000_000_000 },
            markers: Vec::new(),
            journal: Vec::new(),
        }
    }

    fn take(&mut self, out: Effects) {
        assert!(out.answers.is_empty());
        self.markers.extend(out.markers);
        self.journal.extend(out.records);
    }

    fn pass(&mut self, millis: u64) {
        self.now.since_start = self.now.since_start.after(Millis(millis));
        self.now.wall += i64::try_from(millis).unwrap();
        let mut out = Effects::new();
        self.transactions.tick(self.now, &mut out);
        self.take(out);
    }

    fn request(&mut self, request: &InitRequest) -> Result<Producer, ErrorCode> {
        let mut out = Effects::new();
        let answer = self.transactions.init_producer_id(self.now, request, &mut out);
        self.take(out);
        answer
    }

    /// A producer takes over the transactional id `x`.
    fn init(&mut self) -> Result<Producer, ErrorCode> {
        self.request(&init("x", NONE))
    }

    /// A producer goes on under the transactional id `x`.
    fn go_on(&mut self, current: Producer) -> Result<Producer, ErrorCode> {
        self.request(&init("x", current))
    }

    fn add(&mut self, producer: Producer, partition: i32) -> ErrorCode {
        let partitions = [TopicPartition::new("t", partition)];
        let mut out = Effects::new();
        let code = self.transactions.add_partitions(self.now, "x", producer, &partitions, &mut out);
        self.take(out);
        code
    }

    fn add_group(&mut self, producer: Producer, group: &str) -> ErrorCode {
        let mut out = Effects::new();
        let code = self.transactions.add_offsets(self.now, "x", producer, group, &mut out);
        self.take(out);
        code
    }

    fn end(&mut self, producer: Producer, commit: bool) -> ErrorCode {
        let mut out = Effects::new();
        let code = self.transactions.end(self.now, "x", producer, commit, &mut out);
        self.take(out);
        code
    }

    /// Writes all markers that are to be written.
    fn write_markers(&mut self) -> Vec<WriteMarkers> {
        let markers = std::mem::take(&mut self.markers);
        for written in &markers {
            let mut out = Effects::new();
            self.transactions.markers_written(self.now, written, &mut out);
            self.take(out);
        }
        markers
    }

    fn describe(&self) -> DescribedTransaction {
        self.transactions.describe("x").unwrap()
    }

    fn state(&self) -> TransactionState {
        self.describe().state
    }

    /// The broker was killed and started again, `millis` later.
    fn restart(&mut self, millis: u64) {
        let settings = Settings { transactions: self.settings.clone(), ..Settings::default() };
        let journal = self.journal.iter().map(|record| Record::decode(record.encode()).unwrap());
        self.now = Now { since_start: Millis(0), wall: self.now.wall + i64::try_from(millis).unwrap() };
        let mut out = Effects::new();
        self.transactions = Coordinators::restore(settings, self.now, journal, &mut out).transactions;
        assert!(out.records.is_empty());
        self.markers.clear();
        self.take(out);
    }
}

const NONE: Producer = Producer { id: -1, epoch: -1 };

fn init(transactional_id: &str, current: Producer) -> InitRequest {
    InitRequest { transactional_id: Some(transactional_id.to_owned()), timeout_ms: TIMEOUT, current }
}

fn bumped(producer: Producer) -> Producer {
    Producer::new(producer.id, producer.epoch + 1)
}
