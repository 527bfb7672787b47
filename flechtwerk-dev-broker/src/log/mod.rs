//! The log of one partition: what is appended, what a reader may see, and what compaction leaves.
//!
//! A [`PartitionLog`] is synchronous and knows no clock and no protocol requests: the caller brings the time and turns
//! answers into messages. Batches are kept as they come; only base offset, leader epoch and (for `LogAppendTime`) the
//! timestamp are written into them.

mod error;
mod partition;
mod types;

pub use error::{AppendError, DeleteRecordsError, OutOfRange, StorageError};
pub use partition::PartitionLog;
pub use types::{
    Appended, CompactOptions, CompactReport, Fetched, FoundOffset, Isolation, LogConfig, OffsetSpec,
    ProducerInfo, TimestampType,
};
