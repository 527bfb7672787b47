//! Which positions count: what was committed in each transaction, out of the records of `__consumer_offsets`.

use std::collections::BTreeMap;

use flechtwerk_checkers::Producer;
use flechtwerk_checkers::batches::{Batch, Content};
use flechtwerk_checkers::tiling::OffsetRecord;
pub use flechtwerk_tests::consumer_offsets::{Commit, TOPIC, commit};

/// What was committed by each group in transactions, in the order of their markers. A request that a client has sent again stands there
/// twice within one transaction, and counts once.
pub fn committed(batches: &[Batch<Option<Commit>>]) -> Vec<(String, OffsetRecord)> {
    let mut open: BTreeMap<i64, Vec<(Producer, Commit)>> = BTreeMap::new();
    let mut found = Vec::new();
    for batch in batches {
        let Some(producer) = batch.producer else { continue };
        match &batch.content {
            Content::Records(records) => {
                let of_producer = open.entry(producer.id).or_default();
                for commit in records.iter().filter_map(|(_, commit)| commit.clone()) {
                    let same = |(_, one): &(Producer, Commit)| {
                        one.group == commit.group && one.partition == commit.partition
                    };
                    match of_producer.iter_mut().find(|one| same(one)) {
                        Some(before) => *before = (producer, commit),
                        None => of_producer.push((producer, commit)),
                    }
                }
            }
            Content::Marker { commit } => {
                for (producer, one) in open.remove(&producer.id).filter(|_| *commit).unwrap_or_default() {
                    let record = OffsetRecord {
                        partition: one.partition,
                        offset: one.offset,
                        metadata: one.metadata,
                        producer: Some(producer),
                    };
                    found.push((one.group, record));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use flechtwerk_checkers::Partition;

    use super::*;

    #[test]
    fn a_position_that_was_sent_twice_in_a_transaction_counts_once() {
        let producer = Some(Producer { id: 1, epoch: 0 });
        let records = |offset| {
            let partition = Partition::new("words", 7);
            let commit = Commit { group: "group".into(), partition, offset, metadata: "a:1:-".into() };
            Batch { base_offset: 0, producer, content: Content::Records(vec![(0, Some(commit))]) }
        };
        let marker = |commit| Batch { base_offset: 0, producer, content: Content::Marker { commit } };
        let offsets = |batches: &[Batch<Option<Commit>>]| -> Vec<i64> {
            committed(batches).into_iter().map(|(_, record)| record.offset).collect()
        };
        assert_eq!(offsets(&[records(1), records(1), marker(true), records(2), marker(true)]), [1, 2]);
        assert_eq!(offsets(&[records(1), marker(true), records(1), marker(true)]), [1, 1]);
        assert_eq!(offsets(&[records(1), marker(false), records(2), marker(true), records(3)]), [2]);
    }
}
