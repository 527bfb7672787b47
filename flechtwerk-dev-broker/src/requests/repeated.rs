//! What a request names twice: a real Kafka puts most of it into tables, so that it is looked at and answered once. That also
//! bounds what a request can ask for.

use std::collections::HashMap;
use std::hash::Hash;

use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{
    TopicName, offset_commit_response, offset_delete_response, txn_offset_commit_response,
};

/// A topic with its partitions, in a request or an answer.
pub(super) trait OfTopic: Sized {
    type Partition;

    fn parts(self) -> (TopicName, Vec<Self::Partition>);
    fn from_parts(name: TopicName, partitions: Vec<Self::Partition>) -> Self;
}

macro_rules! of_topic {
    ($topic:ty, $partition:ty, $name:ident) => {
        of_topic!($topic, $partition, $name, partitions);
    };
    ($topic:ty, $partition:ty, $name:ident, $partitions:ident) => {
        impl OfTopic for $topic {
            type Partition = $partition;

            fn parts(self) -> (TopicName, Vec<$partition>) {
                (self.$name, self.$partitions)
            }

            fn from_parts(name: TopicName, partitions: Vec<$partition>) -> Self {
                let mut topic = Self::default();
                topic.$name = name;
                topic.$partitions = partitions;
                topic
            }
        }
    };
}

of_topic!(FetchTopic, FetchPartition, topic);
of_topic!(ListOffsetsTopic, ListOffsetsPartition, name);
of_topic!(DeleteRecordsTopic, DeleteRecordsPartition, name);
of_topic!(AddPartitionsToTxnTopicResult, AddPartitionsToTxnPartitionResult, name, results_by_partition);
of_topic!(
    offset_commit_response::OffsetCommitResponseTopic,
    offset_commit_response::OffsetCommitResponsePartition,
    name
);
of_topic!(
    offset_delete_response::OffsetDeleteResponseTopic,
    offset_delete_response::OffsetDeleteResponsePartition,
    name
);
of_topic!(
    txn_offset_commit_response::TxnOffsetCommitResponseTopic,
    txn_offset_commit_response::TxnOffsetCommitResponsePartition,
    name
);

/// One item for each key, in the order in which the keys first come: what `again` makes of the one that there is and the next one.
pub(super) fn once<K: Eq + Hash, T>(
    all: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
    mut again: impl FnMut(&mut T, T),
) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    for one in all {
        let place = *places.entry(key(&one)).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(first) => again(first, one),
            None => kept.push(one),
        }
    }
    kept
}

/// Each topic once, with the partitions of all its mentions.
pub(super) fn joined<T: OfTopic>(topics: impl IntoIterator<Item = T>) -> Vec<T> {
    let parts = topics.into_iter().map(T::parts);
    let joined = once(parts, |(name, _)| name.clone(), |(_, first), (_, next)| first.extend(next));
    joined.into_iter().map(|(name, partitions)| T::from_parts(name, partitions)).collect()
}

/// Each topic once, and each of its partitions once; none without partitions.
pub(super) fn distinct<T: OfTopic>(
    topics: Vec<T>,
    index: impl Fn(&T::Partition) -> i32,
    again: impl Fn(&mut T::Partition, T::Partition),
) -> Vec<T> {
    let topics = joined(topics).into_iter().map(T::parts).filter(|(_, partitions)| !partitions.is_empty());
    topics.map(|(name, partitions)| T::from_parts(name, once(partitions, &index, &again))).collect()
}
