//! Transactions.

use std::time::Duration;

use rdkafka::bindings as rd;

use super::consumer::GroupMetadata;
use super::error::{self, NativeError};
use super::{Handle, List, millis};

impl Handle {
    /// `InitProducerId`.
    pub(crate) fn init_transactions(&self, limit: Duration) -> Result<(), NativeError> {
        // SAFETY: no pointers.
        error::take(unsafe { rd::rd_kafka_init_transactions(self.as_ptr(), millis(limit)) })
    }

    /// Begins a transaction.
    pub(crate) fn begin_transaction(&self) -> Result<(), NativeError> {
        // SAFETY: no arguments.
        error::take(unsafe { rd::rd_kafka_begin_transaction(self.as_ptr()) })
    }

    /// Adds offsets to the transaction, with the member's metadata as it is now.
    pub(crate) fn send_offsets(
        &self,
        offsets: &List,
        member: &Handle,
        limit: Duration,
    ) -> Result<(), NativeError> {
        let metadata = GroupMetadata::of(member)?;
        // SAFETY: list and metadata live through the call, which copies them.
        error::take(unsafe {
            rd::rd_kafka_send_offsets_to_transaction(
                self.as_ptr(),
                offsets.as_ptr(),
                metadata.as_ptr(),
                millis(limit),
            )
        })
    }

    /// Flushes and commits, for at most `limit`; goes on where an earlier call ran out of time.
    pub(crate) fn commit_transaction(&self, limit: Duration) -> Result<(), NativeError> {
        // SAFETY: no pointers.
        error::take(unsafe { rd::rd_kafka_commit_transaction(self.as_ptr(), millis(limit)) })
    }

    /// Purges and aborts, for at most `limit`; goes on where an earlier call ran out of time.
    pub(crate) fn abort_transaction(&self, limit: Duration) -> Result<(), NativeError> {
        // SAFETY: no pointers.
        error::take(unsafe { rd::rd_kafka_abort_transaction(self.as_ptr(), millis(limit)) })
    }
}
