//! The batch that a task is building, and those that are closed: one transaction each (S2.4).

use std::sync::Arc;

use crate::glue::{Env, Outputs, RawRecord};
use crate::task::{BatchId, Layer};

/// A closed batch: it is sent as it is, as often as need be.
#[derive(Default)]
pub(super) struct ClosedBatch {
    pub(super) id: BatchId,
    pub(super) outputs: Outputs,
    /// The changes of state, as they go to the changelog and the store.
    pub(super) layer: Arc<Layer>,
    pub(super) records: usize,
    /// Timers that fired in it.
    pub(super) fired: u64,
    /// Of an extractor's page: where its config lies.
    pub(super) page: Option<String>,
    /// What it was computed with.
    pub(super) env: Option<Env>,
}

/// A batch that still takes records.
#[derive(Default)]
pub(super) struct Building {
    /// Input records in it.
    pub(super) records: usize,
    /// Bytes of their keys and values.
    pub(super) input_bytes: usize,
    /// Timers that fired in it.
    pub(super) fired: u64,
    pub(super) outputs: Outputs,
    /// The one version of each table that it sees, from its first round on (S9.1).
    pub(super) env: Option<Env>,
}

impl Building {
    /// Nothing was done in it.
    pub(super) fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// Calls of the stage's functions.
    pub(super) fn size(&self) -> usize {
        self.records + self.fired as usize
    }
}

/// Records that were taken from the queues and not processed yet, because the round they were in grew too large.
#[derive(Default)]
pub(super) struct Held {
    records: Vec<RawRecord>,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Keeps the records of a round that does not count; they come back in input and offset order.
    pub(super) fn put(&mut self, mut records: Vec<RawRecord>) {
        records.append(&mut self.records);
        records.sort_by_key(|record| (record.input, record.offset));
        self.records = records;
    }

    /// The first `max` records: a prefix of each input's.
    pub(super) fn take(&mut self, max: usize) -> Vec<RawRecord> {
        let rest = self.records.split_off(max.min(self.records.len()));
        std::mem::replace(&mut self.records, rest)
    }

    /// True if a record of this input is held.
    pub(super) fn holds(&self, input: usize) -> bool {
        self.records.iter().any(|record| usize::from(record.input) == input)
    }
}
