//! One partition's log: appending, markers, deleting, and the offsets that bound what readers see.

use bytes::Bytes;

use super::{
    AppendError, Appended, CompactOptions, CompactReport, DeleteRecordsError, Fetched, FoundOffset,
    Isolation, LogConfig, OffsetSpec, OutOfRange, ProducerInfo, StorageError,
};

/// The log of one partition. Times (`now`) are wall-clock milliseconds since 1970.
#[derive(Debug)]
pub struct PartitionLog {
    config: LogConfig,
}

impl PartitionLog {
    /// An empty log that lives in memory alone.
    pub fn in_memory(config: LogConfig) -> Self {
        Self { config }
    }

    /// The settings in use.
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// Changes the settings; what is in the log stays.
    pub fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    /// The epoch that is written into batches from now on; 0 at first. Only ever rises.
    pub fn set_leader_epoch(&mut self, _epoch: i32) {}

    /// The current leader epoch.
    pub fn leader_epoch(&self) -> i32 {
        0
    }

    /// Appends what a producer sent for this partition: exactly one record batch, as Kafka demands it.
    ///
    /// Whether a transaction may write to this partition is the coordinator's to know: ask it before.
    pub fn append(&mut self, _records: Bytes, _now: i64) -> Result<Appended, AppendError> {
        Err(AppendError::InvalidRecord("not ready"))
    }

    /// Ends the producer's transaction in this partition by a control batch; a marker without an open transaction is
    /// appended too, as Kafka does.
    pub fn append_marker(
        &mut self,
        _producer_id: i64,
        _producer_epoch: i16,
        _commit: bool,
        _coordinator_epoch: i32,
        _now: i64,
    ) -> Result<Appended, AppendError> {
        Err(AppendError::InvalidRecord("not ready"))
    }

    /// Whole batches from the one that contains `from`, at most `max_bytes`; with `min_one_batch` the first one comes
    /// even if it is larger. An offset at the end, or in a hole before it, gives no bytes.
    ///
    /// May return less than `max_bytes` where more would have to be copied: read on from the offset that follows.
    pub fn read(
        &self,
        from: i64,
        _max_bytes: usize,
        _isolation: Isolation,
        _min_one_batch: bool,
    ) -> Result<Fetched, OutOfRange> {
        Err(OutOfRange { offset: from, log_start_offset: 0, log_end_offset: 0 })
    }

    /// Finds an offset; `None` where no record has such a timestamp (the protocol's -1).
    pub fn offset_for(&self, _spec: OffsetSpec, _isolation: Isolation) -> Option<FoundOffset> {
        None
    }

    /// The epoch and end offset for `OffsetForLeaderEpoch`; `(-1, -1)` if the epoch is not known.
    pub fn end_offset_for_epoch(&self, _epoch: i32) -> (i32, i64) {
        (-1, -1)
    }

    /// Deletes what lies before an offset (-1: everything); returns the first offset of the log.
    pub fn delete_records(&mut self, _before: i64) -> Result<i64, DeleteRecordsError> {
        Ok(0)
    }

    /// Compacts as Kafka's cleaner does, whatever the topic's `cleanup.policy` says (check it before).
    pub fn compact(&mut self, _now: i64, _options: CompactOptions) -> Result<CompactReport, StorageError> {
        Ok(CompactReport::default())
    }

    /// Forgets producers that have neither appended since `before` (wall-clock milliseconds) nor a transaction open.
    pub fn expire_producers(&mut self, _before: i64) {}

    /// The producers known here, by id.
    pub fn producers(&self) -> Vec<ProducerInfo> {
        Vec::new()
    }

    /// One producer, if it is known here.
    pub fn producer(&self, _producer_id: i64) -> Option<ProducerInfo> {
        None
    }

    /// The first offset of the log.
    pub fn log_start_offset(&self) -> i64 {
        0
    }

    /// The end of what is readable: with one broker, the end of the log.
    pub fn high_watermark(&self) -> i64 {
        0
    }

    /// The first offset that read-committed readers don't see yet.
    pub fn last_stable_offset(&self) -> i64 {
        0
    }

    /// The bytes of all batches in the log.
    pub fn size_bytes(&self) -> usize {
        0
    }

    /// How many bytes a read from `from` would have before it, at the most, without limit: what a waiting fetch
    /// compares with its `min_bytes`. Nought where `from` is out of range.
    pub fn available_bytes(&self, _from: i64, _isolation: Isolation) -> usize {
        0
    }
}
