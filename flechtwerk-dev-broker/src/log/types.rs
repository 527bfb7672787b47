//! What goes into a partition log and what comes out: plain values without behaviour.

use bytes::Bytes;

/// Who gives the records of a topic their timestamp (`message.timestamp.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampType {
    /// The producer (`CreateTime`).
    #[default]
    CreateTime,
    /// The broker, when it appends (`LogAppendTime`).
    LogAppendTime,
}

/// The topic settings that a log obeys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// The largest batch in bytes (`max.message.bytes`).
    pub max_message_bytes: usize,
    /// Who sets the timestamps (`message.timestamp.type`).
    pub timestamp_type: TimestampType,
    /// How far in the past a record's timestamp may lie, in milliseconds (`message.timestamp.before.max.ms`).
    pub timestamp_before_max_ms: i64,
    /// How far in the future a record's timestamp may lie, in milliseconds (`message.timestamp.after.max.ms`).
    pub timestamp_after_max_ms: i64,
    /// How long tombstones and markers outlive their data, in milliseconds (`delete.retention.ms`).
    pub delete_retention_ms: i64,
    /// How large a segment may grow before the next append begins a new one (`segment.bytes`).
    pub segment_bytes: usize,
    /// How far apart the timestamps of a segment may lie before the next append begins a new one (`segment.ms`).
    pub segment_ms: i64,
    /// `cleanup.policy` contains `compact`: records need a key.
    pub compact: bool,
    /// `cleanup.policy` contains `delete`: records may be deleted by request.
    pub delete: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            max_message_bytes: 1_048_588,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            delete_retention_ms: 86_400_000,
            segment_bytes: 1 << 30,
            segment_ms: 604_800_000,
            compact: false,
            delete: true,
        }
    }
}

/// What a reader may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Everything below the high watermark.
    ReadUncommitted,
    /// Everything below the last stable offset, with the list of aborted transactions.
    ReadCommitted,
}

/// Where a batch came to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The offset of the first record; that of the first append if the batch is a duplicate.
    pub base_offset: i64,
    /// The offset of the last record.
    pub last_offset: i64,
    /// The timestamp the broker gave, or -1 where the producer's own counts.
    pub log_append_time: i64,
    /// The first offset of the log.
    pub log_start_offset: i64,
    /// The batch is one of the producer's last five: nothing was appended.
    pub duplicate: bool,
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Whole batches, the first one containing the asked offset (or following it, where there is a hole).
    pub records: Bytes,
    /// The end of what is readable at all; one broker: the end of the log.
    pub high_watermark: i64,
    /// The first offset that read-committed readers don't see yet.
    pub last_stable_offset: i64,
    /// The first offset of the log.
    pub log_start_offset: i64,
    /// The aborted transactions that reach into `records`: producer id and first offset; empty for `ReadUncommitted`.
    pub aborted: Vec<(i64, i64)>,
}

/// What `ListOffsets` may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The first offset of the log (-2).
    Earliest,
    /// The end: high watermark or last stable offset (-1).
    Latest,
    /// The record with the largest timestamp (-3).
    MaxTimestamp,
    /// The first record with this timestamp or a later one.
    Timestamp(i64),
}

/// An offset found by `ListOffsets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundOffset {
    /// The offset.
    pub offset: i64,
    /// The record's timestamp, -1 for `Earliest` and `Latest`.
    pub timestamp: i64,
    /// The leader epoch at that offset, -1 if unknown.
    pub leader_epoch: i32,
}

/// A producer as `DescribeProducers` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerInfo {
    /// The producer id.
    pub producer_id: i64,
    /// The last epoch seen in this partition.
    pub producer_epoch: i16,
    /// The last sequence number, -1 if there is none in this epoch.
    pub last_sequence: i32,
    /// The timestamp of the last append.
    pub last_timestamp: i64,
    /// The epoch of the coordinator that wrote the last marker, -1 if there was none.
    pub coordinator_epoch: i32,
    /// The first offset of the open transaction, -1 if there is none.
    pub current_txn_start_offset: i64,
}

/// How to compact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactOptions {
    /// Where the active segment begins: nothing from here on is touched. Without it the active segment is the last
    /// batch alone, which is what a Kafka with the smallest segments leaves.
    pub active_from: Option<i64>,
}

/// What a compaction has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactReport {
    /// The bytes in the log before.
    pub bytes_before: usize,
    /// The bytes in the log after.
    pub bytes_after: usize,
    /// The data records removed.
    pub records_removed: u64,
    /// The transaction markers removed.
    pub markers_removed: u64,
    /// Batches left as they are since their compression can't be opened here.
    pub opaque_batches: u64,
}
