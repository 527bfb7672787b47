//! A group's offsets: those that are committed, and those that wait for the end of a transaction.

use std::collections::{BTreeMap, BTreeSet};

use crate::coordinator::journal::StoredOffset;
use crate::coordinator::{Producer, TopicPartition};

/// The offsets of a group.
#[derive(Default)]
pub(super) struct Offsets {
    committed: BTreeMap<TopicPartition, StoredOffset>,
    /// By producer id. A producer has one transaction at a time.
    pending: BTreeMap<i64, Pending>,
}

/// What a producer's open transaction will commit.
pub(super) struct Pending {
    epoch: i16,
    offsets: BTreeMap<TopicPartition, StoredOffset>,
}

impl Offsets {
    pub(super) fn commit(&mut self, partition: &TopicPartition, offset: &StoredOffset) {
        self.committed.insert(partition.clone(), offset.clone());
    }

    pub(super) fn add_pending(
        &mut self,
        producer: Producer,
        partition: &TopicPartition,
        offset: &StoredOffset,
    ) {
        let new = || Pending { epoch: producer.epoch, offsets: BTreeMap::new() };
        let pending = self.pending.entry(producer.id).or_insert_with(new);
        pending.epoch = producer.epoch;
        pending.offsets.insert(partition.clone(), offset.clone());
    }

    /// Ends a producer's transaction. Of a pending offset and one that was committed on its own the later one stays.
    pub(super) fn end_pending(&mut self, producer_id: i64, commit: bool) {
        let Some(pending) = self.pending.remove(&producer_id) else {
            return;
        };
        if !commit {
            return;
        }
        for (partition, offset) in pending.offsets {
            let is_latest =
                self.committed.get(&partition).is_none_or(|existing| offset.position > existing.position);
            if is_latest {
                self.committed.insert(partition, offset);
            }
        }
    }

    /// Forgets a partition, also where its offset is pending.
    pub(super) fn delete(&mut self, partition: &TopicPartition) {
        self.committed.remove(partition);
        for pending in self.pending.values_mut() {
            pending.offsets.remove(partition);
        }
        self.pending.retain(|_, pending| !pending.offsets.is_empty());
    }

    pub(super) fn get(&self, partition: &TopicPartition) -> Option<&StoredOffset> {
        self.committed.get(partition)
    }

    pub(super) fn has_pending(&self, partition: &TopicPartition) -> bool {
        self.pending.values().any(|pending| pending.offsets.contains_key(partition))
    }

    pub(super) fn has_any(&self, partition: &TopicPartition) -> bool {
        self.committed.contains_key(partition) || self.has_pending(partition)
    }

    pub(super) fn has_open_transactions(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The epoch of the producer's open transaction.
    pub(super) fn pending_epoch(&self, producer_id: i64) -> Option<i16> {
        self.pending.get(&producer_id).map(|pending| pending.epoch)
    }

    pub(super) fn committed(&self) -> impl Iterator<Item = (&TopicPartition, &StoredOffset)> {
        self.committed.iter()
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = (Producer, &TopicPartition, &StoredOffset)> {
        self.pending.iter().flat_map(|(id, pending)| {
            let producer = Producer::new(*id, pending.epoch);
            pending.offsets.iter().map(move |(partition, offset)| (producer, partition, offset))
        })
    }

    /// The partitions of a topic with an offset of any kind.
    pub(super) fn partitions_of(&self, topic: &str) -> BTreeSet<TopicPartition> {
        let committed = self.committed.keys();
        let pending = self.pending.values().flat_map(|pending| pending.offsets.keys());
        committed.chain(pending).filter(|partition| partition.topic == topic).cloned().collect()
    }
}
