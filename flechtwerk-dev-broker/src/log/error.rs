//! Why a log refuses; each reason is one protocol error code.

use thiserror::Error;

use crate::storage::StorageError;

/// Why nothing was appended.
#[derive(Debug, Error)]
pub enum AppendError {
    /// The bytes are no sound record batch.
    #[error("record batch is damaged: {0}")]
    Corrupt(&'static str),
    /// The batch is sound, but not one that a producer may send.
    #[error("record batch is not allowed: {0}")]
    InvalidRecord(&'static str),
    /// Records without a key for a compacted topic.
    #[error("a compacted topic takes no record without a key")]
    WithoutKey {
        /// Their places in the batch, from 0.
        records: Vec<i32>,
    },
    /// The batch has a format from before Kafka 0.11.
    #[error("record batch has magic {0}, only 2 is supported")]
    UnsupportedMagic(i8),
    /// The batch is larger than `max.message.bytes`.
    #[error("record batch of {size} bytes is larger than max.message.bytes ({max})")]
    TooLarge {
        /// The batch's size.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// A record's timestamp is too far from the broker's clock.
    #[error("timestamp {timestamp} is too far from the broker's time")]
    InvalidTimestamp {
        /// The timestamp.
        timestamp: i64,
    },
    /// The sequence number doesn't follow the last one.
    #[error("producer {producer_id} sent sequence {sequence} after {last}")]
    OutOfOrderSequence {
        /// The producer.
        producer_id: i64,
        /// The sequence number that came.
        sequence: i32,
        /// The last one before it, -1 if there is none in this epoch.
        last: i32,
    },
    /// The producer has a newer epoch: this one is fenced.
    #[error("producer {producer_id} has epoch {current}, the request has {epoch}")]
    InvalidProducerEpoch {
        /// The producer.
        producer_id: i64,
        /// The epoch of the request.
        epoch: i16,
        /// The current epoch.
        current: i16,
    },
    /// A batch outside a transaction came while the producer has one open here.
    #[error("producer {producer_id} sent a batch without a transaction while one is open")]
    InvalidTxnState {
        /// The producer.
        producer_id: i64,
    },
    /// The marker comes from a coordinator that has been replaced.
    #[error("marker for producer {producer_id} has coordinator epoch {epoch}, the last one had {current}")]
    CoordinatorFenced {
        /// The producer.
        producer_id: i64,
        /// The coordinator epoch of the marker.
        epoch: i32,
        /// The last one seen.
        current: i32,
    },
    /// The batch could not be written to the data folder.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl AppendError {
    /// The protocol's error code.
    pub fn code(&self) -> i16 {
        match self {
            Self::Corrupt(_) => 2,
            Self::InvalidRecord(_) | Self::WithoutKey { .. } | Self::UnsupportedMagic(_) => 87,
            Self::TooLarge { .. } => 10,
            Self::InvalidTimestamp { .. } => 32,
            Self::OutOfOrderSequence { .. } => 45,
            Self::InvalidProducerEpoch { .. } => 47,
            Self::InvalidTxnState { .. } => 48,
            Self::CoordinatorFenced { .. } => 52,
            Self::Storage(_) => 56,
        }
    }
}

/// The offset asked for is not in the log (`OFFSET_OUT_OF_RANGE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("offset {offset} is outside of the log, which has {log_start_offset} to {log_end_offset}")]
pub struct OutOfRange {
    /// The offset asked for.
    pub offset: i64,
    /// The first offset of the log.
    pub log_start_offset: i64,
    /// The offset the next record will get.
    pub log_end_offset: i64,
}

impl OutOfRange {
    /// The protocol's error code.
    pub fn code(&self) -> i16 {
        1
    }
}

/// Why no records were deleted.
#[derive(Debug, Error)]
pub enum DeleteRecordsError {
    /// The offset lies beyond the end.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The topic's `cleanup.policy` doesn't contain `delete`.
    #[error("records can't be deleted: cleanup.policy doesn't contain delete")]
    Policy,
    /// The change could not be written to the data folder.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl DeleteRecordsError {
    /// The protocol's error code.
    pub fn code(&self) -> i16 {
        match self {
            Self::OutOfRange(error) => error.code(),
            Self::Policy => 44,
            Self::Storage(_) => 56,
        }
    }
}
