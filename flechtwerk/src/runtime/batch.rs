//! The batch that a task is building, and those that are closed: one transaction each (S2.4).

use std::sync::Arc;
use std::time::Duration;

use crate::glue::{Env, Order, Outputs, RawRecord};
use crate::task::{BatchId, Layer, merge_by_timestamp};

/// A closed batch: it is sent as it is, as often as need be.
#[derive(Default)]
pub(super) struct ClosedBatch {
    pub(super) id: BatchId,
    pub(super) outputs: Outputs,
    /// Where it leaves the inputs.
    pub(super) positions: Vec<i64>,
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
    /// How long user code has run for it (S2.8).
    pub(super) spent: Duration,
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

/// Records that were taken from the queues and not processed yet, because the round they were in grew too large. They are
/// still that round: what comes back first is what it would have begun with.
pub(super) struct Held {
    order: Order,
    records: Vec<RawRecord>,
}

impl Held {
    /// None, of a stage that takes its inputs in this order.
    pub(super) fn new(order: Order) -> Held {
        Held { order, records: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets them.
    pub(super) fn clear(&mut self) {
        self.records.clear();
    }

    /// Keeps the records of a round that does not count.
    pub(super) fn put(&mut self, mut records: Vec<RawRecord>) {
        records.append(&mut self.records);
        records.sort_by_key(|record| (record.input, record.offset));
        if self.order == Order::Timestamp {
            merge_by_timestamp(&mut records);
        }
        self.records = records;
    }

    /// The first `max` records in the order of the stage, which are a prefix of each input's; they come input by input.
    pub(super) fn take(&mut self, max: usize) -> Vec<RawRecord> {
        let rest = self.records.split_off(max.min(self.records.len()));
        let mut records = std::mem::replace(&mut self.records, rest);
        if self.order == Order::Timestamp {
            records.sort_by_key(|record| (record.input, record.offset));
        }
        records
    }

    /// True if a record of this input is held.
    pub(super) fn holds(&self, input: usize) -> bool {
        self.records.iter().any(|record| usize::from(record.input) == input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::testing::record;

    #[test]
    fn records_and_timers_make_the_size_of_a_batch() {
        let mut building = Building::default();
        assert!(building.is_empty());
        (building.records, building.fired) = (3, 2);
        assert_eq!(building.size(), 5);
        assert!(!building.is_empty());
        (building.records, building.fired) = (0, 1);
        assert!(!building.is_empty(), "a timer alone is something");
    }

    fn of(input: u16, offset: i64, timestamp: i64) -> RawRecord {
        RawRecord { input, timestamp, ..record(offset, b"k", None) }
    }

    fn places(records: &[RawRecord]) -> Vec<(u16, i64)> {
        records.iter().map(|record| (record.input, record.offset)).collect()
    }

    #[test]
    fn held_records_come_back_in_the_order_of_inputs_and_offsets() {
        let mut held = Held::new(Order::Inputs);
        assert!(held.is_empty());
        held.put(vec![of(2, 8, 1), of(0, 6, 9)]);
        // Those of a later round were taken before.
        held.put(vec![of(0, 5, 9), of(2, 7, 1)]);
        assert!(!held.is_empty());
        assert_eq!([0, 1, 2].map(|input| held.holds(input)), [true, false, true]);
        assert_eq!(places(&held.take(3)), [(0, 5), (0, 6), (2, 7)]);
        assert_eq!([0, 1, 2].map(|input| held.holds(input)), [false, false, true]);
        assert_eq!(places(&held.take(9)), [(2, 8)]);
        assert!(held.is_empty() && held.take(1).is_empty());
        held.put(vec![of(0, 1, 0)]);
        held.clear();
        assert!(held.is_empty() && !held.holds(0));
    }

    /// S2.4k
    #[test]
    fn with_order_timestamp_the_oldest_held_records_come_back_first() {
        let mut held = Held::new(Order::Timestamp);
        // Buckets are in no order, and the timestamps of an input may go back.
        held.put(vec![of(0, 6, 20), of(1, 8, 20), of(0, 5, 10), of(1, 7, 5), of(0, 7, 1), of(0, 8, 30)]);
        // What a round gets comes input by input, as from the queues.
        assert_eq!(places(&held.take(3)), [(0, 5), (0, 6), (1, 7)]);
        // It was too large again: nothing is passed over.
        held.put(vec![of(0, 5, 10), of(0, 6, 20), of(1, 7, 5)]);
        assert_eq!(places(&held.take(1)), [(1, 7)]);
        assert_eq!(places(&held.take(1)), [(0, 5)]);
        // A tie follows the inputs. The third of the first input is older than its place says: offsets come first.
        assert_eq!(places(&held.take(2)), [(0, 6), (0, 7)]);
        assert_eq!([0, 1].map(|input| held.holds(input)), [true, true]);
        assert_eq!(places(&held.take(9)), [(0, 8), (1, 8)]);
        assert!(held.is_empty());
    }
}
