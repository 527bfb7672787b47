//! The group coordinator: membership by the classic protocol, committed offsets, and pending offsets of transactions.

mod debug;
mod types;

pub use types::{
    CommitRequest, DescribedGroup, DescribedMember, FetchedOffset, GroupSettings, GroupState, JoinProtocol,
    JoinRequest, JoinResponse, JoinedMember, LeavingMember, ListedGroup, OffsetCommit, SyncRequest,
    SyncResponse, TxnCommitRequest,
};

use super::{Effects, ErrorCode, Millis, Now, Producer, Record, Ticket, TopicPartition};

/// All groups of the broker.
#[derive(Debug)]
pub struct Groups {
    settings: GroupSettings,
}

impl Groups {
    /// No groups yet.
    pub fn new(settings: GroupSettings) -> Self {
        Self { settings }
    }

    /// JoinGroup. The answer comes as an effect, of this call or of a later one.
    pub fn join(&mut self, _now: Now, _ticket: Ticket, _request: JoinRequest, _out: &mut Effects) {
        let _ = &self.settings;
    }

    /// SyncGroup. The answer comes as an effect, of this call or of a later one.
    pub fn sync(&mut self, _now: Now, _ticket: Ticket, _request: SyncRequest, _out: &mut Effects) {}

    /// Heartbeat.
    pub fn heartbeat(
        &mut self,
        _now: Now,
        _group: &str,
        _member_id: &str,
        _instance_id: Option<&str>,
        _generation: i32,
    ) -> ErrorCode {
        ErrorCode::None
    }

    /// LeaveGroup: one code for each leaving member, in their order, or one for the whole request. Versions below 3 have one member,
    /// whose code is the request's.
    pub fn leave(
        &mut self,
        _now: Now,
        _group: &str,
        _members: &[LeavingMember],
        _out: &mut Effects,
    ) -> Result<Vec<ErrorCode>, ErrorCode> {
        Ok(Vec::new())
    }

    /// OffsetCommit: one code for each offset, in their order.
    pub fn commit_offsets(
        &mut self,
        _now: Now,
        _request: CommitRequest,
        _out: &mut Effects,
    ) -> Vec<ErrorCode> {
        Vec::new()
    }

    /// TxnOffsetCommit: one code for each offset, in their order. The offsets are pending until the transaction is completed. Whether
    /// the producer may do so is for the caller to ask first, by [`Transactions::verify_group`](super::Transactions::verify_group).
    pub fn txn_commit_offsets(
        &mut self,
        _now: Now,
        _request: TxnCommitRequest,
        _out: &mut Effects,
    ) -> Vec<ErrorCode> {
        Vec::new()
    }

    /// Completes the pending offsets that a producer has in a group: they become the group's, or are dropped. Does nothing where none
    /// are pending, so it may be repeated.
    pub fn complete_txn_offsets(
        &mut self,
        _now: Now,
        _group: &str,
        _producer: Producer,
        _commit: bool,
        _out: &mut Effects,
    ) {
    }

    /// OffsetFetch for some partitions, in their order, or for all that have an offset (`None`). A partition without an offset has
    /// offset -1 and no error.
    pub fn fetch_offsets(
        &self,
        _group: &str,
        _partitions: Option<&[TopicPartition]>,
        _require_stable: bool,
    ) -> Vec<FetchedOffset> {
        Vec::new()
    }

    /// OffsetDelete: one code for each partition, in their order, or one for the whole request.
    pub fn delete_offsets(
        &mut self,
        _now: Now,
        _group: &str,
        _partitions: &[TopicPartition],
        _out: &mut Effects,
    ) -> Result<Vec<ErrorCode>, ErrorCode> {
        Ok(Vec::new())
    }

    /// DeleteGroups, for one group.
    pub fn delete_group(&mut self, _group: &str, _out: &mut Effects) -> ErrorCode {
        ErrorCode::None
    }

    /// Drops the offsets of a topic that was deleted, in all groups.
    pub fn drop_topic(&mut self, _topic: &str, _out: &mut Effects) {}

    /// ListGroups, in the order of their names. The filters are names as on the wire, in any case; an empty one lets everything pass.
    pub fn list(&self, _states: &[String], _types: &[String]) -> Vec<ListedGroup> {
        Vec::new()
    }

    /// DescribeGroups, for one group. `None` if there is no such group, which versions below 6 answer as one in state `Dead`
    /// without error ([`DescribedGroup::dead`]).
    pub fn describe(&self, _group: &str) -> Option<DescribedGroup> {
        None
    }

    /// Does what is due by now: sessions and rebalances that time out.
    pub fn tick(&mut self, _now: Now, _out: &mut Effects) {}

    /// When something is due next.
    pub fn next_deadline(&self) -> Option<Millis> {
        None
    }

    /// The records that build the durable state again, no more than it needs.
    pub fn snapshot(&self) -> Vec<Record> {
        Vec::new()
    }
}
