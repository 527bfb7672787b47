//! Between the strings of the wire and ours.

use kafka_protocol::messages::{BrokerId, GroupId, TopicName, TransactionalId};
use kafka_protocol::protocol::StrBytes;

pub(super) fn text(of: impl Into<String>) -> StrBytes {
    StrBytes::from_string(of.into())
}

pub(super) fn topic_name(of: &str) -> TopicName {
    TopicName(text(of))
}

pub(super) fn group_id(of: &str) -> GroupId {
    GroupId(text(of))
}

pub(super) fn transactional(of: &str) -> TransactionalId {
    TransactionalId(text(of))
}

pub(super) fn brokers(of: &[i32]) -> Vec<BrokerId> {
    of.iter().copied().map(BrokerId).collect()
}

/// A string that may be missing.
pub(super) fn maybe(of: Option<&StrBytes>) -> Option<String> {
    of.map(|text| text.to_string())
}
