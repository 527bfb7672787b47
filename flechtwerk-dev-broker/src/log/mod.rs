//! The log of one partition: what is appended, what a reader may see, and what compaction leaves.
//!
//! A [`PartitionLog`] is synchronous and knows no clock and no protocol requests: the caller brings the time and turns
//! answers into messages. Batches are kept as they come; only base offset, leader epoch and (for `LogAppendTime`) the
//! timestamp are written into them.

pub mod batch;
mod chunks;
mod compaction;
mod compression;
mod error;
mod marker;
mod partition;
mod producers;
mod read;
mod records;
mod segments;
mod state;
mod transactions;
mod types;
mod validate;
#[cfg(feature = "simulation")]
mod write;

#[cfg(test)]
pub(crate) mod tests;

pub use error::{AppendError, DeleteRecordsError, OutOfRange};
pub use marker::Marker;
pub use partition::PartitionLog;
pub use records::{Record, RecordIter, Records};
pub use types::{
    Appended, CompactOptions, CompactReport, Fetched, FoundOffset, Isolation, LogConfig, OffsetSpec,
    ProducerInfo, TimestampType,
};

pub use crate::storage::StorageError;
#[cfg(feature = "simulation")]
pub use write::{KeyAndValue, write_batch};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use {compression::compress, records::write_record};
