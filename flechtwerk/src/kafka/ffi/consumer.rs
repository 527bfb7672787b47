//! What only consumers do: subscribe, assign, commit, leave.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as rd;

use super::error::{self, NativeError, code};
use super::{Entry, Handle, List, Queue, millis, raw};
use crate::port::TopicPartition;

impl Handle {
    /// Joins the group when polled.
    pub(crate) fn subscribe(&self, topics: &[Arc<str>]) -> Result<(), NativeError> {
        let mut list = List::new();
        for topic in topics {
            list.push(&TopicPartition { topic: Arc::clone(topic), partition: -1 }, -1001, None)?;
        }
        // SAFETY: the list is copied.
        error::check(unsafe { rd::rd_kafka_subscribe(self.as_ptr(), list.as_ptr()) })
    }

    /// Leaves the group once the revocation that follows was answered.
    pub(crate) fn unsubscribe(&self) -> Result<(), NativeError> {
        // SAFETY: no arguments.
        error::check(unsafe { rd::rd_kafka_unsubscribe(self.as_ptr()) })
    }

    /// Answers a rebalance: an assignment by a list (which may be empty), a revocation by `None`.
    pub(crate) fn assign(&self, list: Option<&List>) -> Result<(), NativeError> {
        let list = list.map_or(std::ptr::null_mut(), List::as_ptr);
        // SAFETY: null or alive; the list is copied.
        error::check(unsafe { rd::rd_kafka_assign(self.as_ptr(), list) })
    }

    /// True if a revocation means that the assignment is already lost; to be asked before it is answered.
    pub(crate) fn assignment_lost(&self) -> bool {
        // SAFETY: no arguments.
        unsafe { rd::rd_kafka_assignment_lost(self.as_ptr()) != 0 }
    }

    /// Adds a partition to what is fetched, from `offset` on.
    pub(crate) fn assign_partition(&self, at: &TopicPartition, offset: i64) -> Result<(), NativeError> {
        let mut list = List::new();
        list.push(at, offset, None)?;
        // SAFETY: the list is copied.
        error::take(unsafe { rd::rd_kafka_incremental_assign(self.as_ptr(), list.as_ptr()) })
    }

    /// Removes a partition from what is fetched.
    pub(crate) fn unassign_partition(&self, at: &TopicPartition) -> Result<(), NativeError> {
        let list = List::of(std::slice::from_ref(at))?;
        // SAFETY: the list is copied.
        error::take(unsafe { rd::rd_kafka_incremental_unassign(self.as_ptr(), list.as_ptr()) })
    }

    /// What the client's own group has committed; under `read_committed` stable offsets only.
    pub(crate) fn committed(
        &self,
        partitions: &[TopicPartition],
        limit: Duration,
    ) -> Result<Vec<Entry>, NativeError> {
        let list = List::of(partitions)?;
        // SAFETY: the list lives through the call, which fills it in.
        error::check_number(unsafe { raw::rd_kafka_committed(self.as_ptr(), list.as_ptr(), millis(limit)) })?;
        Ok(list.entries())
    }

    /// Begins to close the consumer; `queue`, its own, is to be polled until [`Handle::closed`].
    pub(crate) fn close(&self, queue: &Queue) -> Result<(), NativeError> {
        // SAFETY: both are alive.
        error::take(unsafe { rd::rd_kafka_consumer_close_queue(self.as_ptr(), queue.as_ptr()) })
    }

    /// True once a close has ended.
    pub(crate) fn closed(&self) -> bool {
        // SAFETY: no arguments.
        unsafe { rd::rd_kafka_consumer_closed(self.as_ptr()) != 0 }
    }
}

/// A snapshot of a member's identity and generation, for a transaction's offsets.
pub(super) struct GroupMetadata(*mut rd::rd_kafka_consumer_group_metadata_t);

impl GroupMetadata {
    /// Asks the member; fails when it has been closed.
    pub(super) fn of(member: &Handle) -> Result<Self, NativeError> {
        // SAFETY: no arguments; null when the consumer is closed.
        let metadata = unsafe { rd::rd_kafka_consumer_group_metadata(member.as_ptr()) };
        if metadata.is_null() {
            return Err(NativeError::new(code::UNKNOWN_MEMBER_ID, "the member has left its group"));
        }
        Ok(Self(metadata))
    }

    pub(super) fn as_ptr(&self) -> *const rd::rd_kafka_consumer_group_metadata_t {
        self.0
    }
}

impl Drop for GroupMetadata {
    fn drop(&mut self) {
        // SAFETY: ours, not used afterwards.
        unsafe { rd::rd_kafka_consumer_group_metadata_destroy(self.0) };
    }
}
