//! `Debug` for what carries bytes of users: their lengths, never what they say.

use std::fmt;

use super::types::{
    DescribedMember, FetchedOffset, JoinProtocol, JoinedMember, OffsetCommit, SyncRequest, SyncResponse,
};

impl fmt::Debug for JoinProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinProtocol").field("name", &self.name).field("bytes", &self.metadata.len()).finish()
    }
}

impl fmt::Debug for JoinedMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedMember")
            .field("member_id", &self.member_id)
            .field("instance_id", &self.instance_id)
            .field("bytes", &self.metadata.len())
            .finish()
    }
}

impl fmt::Debug for SyncRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncRequest")
            .field("group", &self.group)
            .field("generation", &self.generation)
            .field("member_id", &self.member_id)
            .field("instance_id", &self.instance_id)
            .field("assignments", &self.assignments.len())
            .finish()
    }
}

impl fmt::Debug for SyncResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncResponse")
            .field("error", &self.error)
            .field("protocol", &self.protocol)
            .field("bytes", &self.assignment.len())
            .finish()
    }
}

impl fmt::Debug for OffsetCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OffsetCommit")
            .field("partition", &self.partition)
            .field("offset", &self.offset)
            .field("leader_epoch", &self.leader_epoch)
            .field("bytes", &self.metadata.as_ref().map(String::len))
            .finish()
    }
}

impl fmt::Debug for FetchedOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchedOffset")
            .field("partition", &self.partition)
            .field("offset", &self.offset)
            .field("leader_epoch", &self.leader_epoch)
            .field("bytes", &self.metadata.len())
            .field("error", &self.error)
            .finish()
    }
}

impl fmt::Debug for DescribedMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DescribedMember")
            .field("member_id", &self.member_id)
            .field("instance_id", &self.instance_id)
            .field("client_id", &self.client_id)
            .field("metadata", &self.metadata.len())
            .field("assignment", &self.assignment.len())
            .finish()
    }
}
