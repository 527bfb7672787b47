//! The records that the journal keeps of the coordinators: what must be known again after the broker was killed.
//!
//! A record is bytes of a form of our own with the form's version in front; the check sum is the storage's. A state is what its
//! records say in their order, so a prefix of a journal is an earlier state, and a snapshot is a shorter list with the same meaning.

mod codec;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;

use super::transaction::TransactionState;
use super::{Producer, TopicPartition};

/// A change to keep in the journal, or one read from it.
#[derive(Clone, PartialEq)]
pub struct Record {
    entry: Entry,
}

impl Record {
    /// The bytes to keep.
    pub fn encode(&self) -> Bytes {
        codec::encode(&self.entry)
    }

    /// The record that these bytes are.
    pub fn decode(bytes: Bytes) -> Result<Self, JournalError> {
        codec::decode(bytes).map(Self::from)
    }

    /// What it says.
    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }
}

impl From<Entry> for Record {
    fn from(entry: Entry) -> Self {
        Self { entry }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, of) = match &self.entry {
            Entry::Group { group, .. } => ("Group", group),
            Entry::GroupDeleted { group } => ("GroupDeleted", group),
            Entry::Offset { group, .. } => ("Offset", group),
            Entry::PendingOffset { group, .. } => ("PendingOffset", group),
            Entry::OffsetDeleted { group, .. } => ("OffsetDeleted", group),
            Entry::PendingEnded { group, .. } => ("PendingEnded", group),
            Entry::Transaction(transaction) => ("Transaction", &transaction.transactional_id),
            Entry::TransactionDeleted { transactional_id } => ("TransactionDeleted", transactional_id),
            Entry::NextProducerId(id) => return f.debug_tuple("NextProducerId").field(id).finish(),
        };
        f.debug_tuple(kind).field(of).finish()
    }
}

/// What a record says.
#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(super) enum Entry {
    /// A group's membership is this.
    Group { group: String, value: Arc<GroupRecord> },
    /// A group is gone, with its offsets, committed and pending.
    GroupDeleted { group: String },
    /// An offset is committed.
    Offset { group: String, partition: TopicPartition, offset: StoredOffset },
    /// An offset is to be committed with a transaction.
    PendingOffset { group: String, producer: Producer, partition: TopicPartition, offset: StoredOffset },
    /// A partition has no offset in the group any more, neither committed nor pending.
    OffsetDeleted { group: String, partition: TopicPartition },
    /// A producer's pending offsets in a group are committed, or dropped.
    PendingEnded { group: String, producer_id: i64, commit: bool },
    /// A transactional id's state is this.
    Transaction(Arc<TransactionRecord>),
    /// A transactional id is forgotten.
    TransactionDeleted { transactional_id: String },
    /// The producer id to give out next.
    NextProducerId(i64),
}

/// A group's membership, as of its last stable generation.
#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct GroupRecord {
    pub(super) generation: i32,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) leader: Option<String>,
    /// Since when (wall clock) the group has been in its state.
    pub(super) since: i64,
    pub(super) members: Vec<MemberRecord>,
}

/// A member, with its metadata for the group's protocol.
#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct MemberRecord {
    pub(super) member_id: String,
    pub(super) instance_id: Option<String>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) session_timeout: u64,
    pub(super) rebalance_timeout: u64,
    pub(super) metadata: Bytes,
    pub(super) assignment: Bytes,
}

/// An offset, committed or pending.
#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct StoredOffset {
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) metadata: String,
    /// When it was committed (wall clock).
    pub(super) committed_at: i64,
    /// Its place among all commits, pending ones as of when they were asked for: the later one wins.
    pub(super) position: u64,
}

/// A transactional id's state.
#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct TransactionRecord {
    pub(super) transactional_id: String,
    pub(super) producer: Producer,
    /// The producer id before the last InitProducerId, -1 for none.
    pub(super) previous_id: i64,
    /// The epoch before the last bump that the producer itself asked for, -1 for none.
    pub(super) last_epoch: i16,
    pub(super) timeout_ms: i32,
    pub(super) state: TransactionState,
    pub(super) partitions: BTreeSet<TopicPartition>,
    pub(super) groups: BTreeSet<String>,
    /// When the last transaction was opened (wall clock), -1 for none.
    pub(super) start: i64,
    /// When the state changed last (wall clock).
    pub(super) updated: i64,
}

/// Why bytes are no record.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JournalError {
    /// Written by another version.
    #[error(
        "the journal has a record of version {version}, and this broker knows version {known}: start with an empty data folder"
    )]
    Version {
        /// What was found.
        version: u8,
        /// What is known.
        known: u8,
    },
    /// Of a kind that is not known.
    #[error("the journal has a record of the unknown kind {kind}: start with an empty data folder")]
    Kind {
        /// What was found.
        kind: u8,
    },
    /// Cut off, or longer than it should be, or with numbers that lie.
    #[error("the journal has a damaged record ({place}): start with an empty data folder")]
    Damaged {
        /// Where in the record.
        place: &'static str,
    },
}
