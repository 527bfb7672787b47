//! One partition's log: appending, markers, deleting, and the offsets that bound what readers see.

use bytes::Bytes;

use super::batch::{self, BatchHeader};
use super::chunks::Chunks;
use super::compaction::Settled;
use super::marker::Marker;
use super::producers::Producers;
use super::segments::ActiveSegment;
use super::state::LogState;
use super::{
    AppendError, Appended, DeleteRecordsError, LogConfig, OutOfRange, ProducerInfo, StorageError,
    TimestampType, validate,
};
use crate::storage::segment::{Frame, SegmentFile};

/// The file is rewritten when at least this much of it is deleted batches.
const MIN_DELETED: u64 = 1024 * 1024;

/// The log of one partition. Times (`now`) are wall-clock milliseconds since 1970.
#[derive(Debug)]
pub struct PartitionLog {
    pub(super) config: LogConfig,
    pub(crate) state: LogState,
    pub(super) chunks: Chunks,
    pub(crate) file: Option<SegmentFile>,
    pub(super) settled: Option<Settled>,
    pub(super) active: ActiveSegment,
}

impl PartitionLog {
    /// An empty log that lives in memory alone.
    pub fn in_memory(config: LogConfig) -> Self {
        Self {
            config,
            state: LogState::default(),
            chunks: Chunks::default(),
            file: None,
            settled: None,
            active: ActiveSegment::default(),
        }
    }

    /// The log that is kept in a segment file, with all that is in it.
    pub(crate) fn open(config: LogConfig, mut file: SegmentFile) -> Result<Self, StorageError> {
        let mut log = Self::in_memory(config);
        // Batches before this offset are in the state that the file begins with.
        let mut known_to = 0;
        let mut last_offset = -1;
        file.load(|frame| match frame {
            Frame::State(bytes) => {
                log.state = LogState::decode(bytes).ok_or("the state can't be read")?;
                known_to = log.state.next_offset;
                Ok(())
            }
            Frame::LogStart(offset) => {
                log.state.set_log_start(offset);
                Ok(())
            }
            Frame::Batch(bytes) => {
                let header = restorable(bytes).map_err(|_| "the batch is damaged")?;
                if header.base_offset <= last_offset {
                    return Err("the batch's offset is not behind the one before it");
                }
                last_offset = header.last_offset();
                if header.base_offset >= known_to {
                    let marker = if header.is_control() {
                        Marker::read(&header, bytes).map_err(|_| "the marker is damaged")?
                    } else {
                        None
                    };
                    log.state.apply(&header, marker);
                }
                log.push(&header, bytes);
                Ok(())
            }
        })?;
        log.chunks.remove_before(log.state.log_start_offset);
        log.active.shrink(&log.chunks);
        log.file = Some(file);
        Ok(log)
    }

    /// The settings in use.
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// Changes the settings; what is in the log stays.
    pub fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    /// The epoch that is written into batches from now on; 0 at first. Only ever rises. Opening the log finds those that are
    /// in batches: the others are the caller's to keep.
    pub fn set_leader_epoch(&mut self, epoch: i32) {
        self.state.begin_epoch(epoch, self.state.next_offset);
    }

    /// The current leader epoch.
    pub fn leader_epoch(&self) -> i32 {
        self.state.leader_epoch()
    }

    /// Appends what a producer sent for this partition: exactly one record batch, as Kafka demands it.
    ///
    /// Whether a transaction may write to this partition is the coordinator's to know: ask it before.
    pub fn append(&mut self, records: Bytes, now: i64) -> Result<Appended, AppendError> {
        let (mut header, batch) = validate::single_batch(&records)?;
        validate::check(&header, batch, &self.config, now)?;
        if header.has_producer()
            && let Some(sent) = self.state.producers.check(&header)?
        {
            return Ok(Appended {
                base_offset: sent.base_offset(),
                last_offset: sent.last_offset,
                log_append_time: sent.timestamp,
                log_start_offset: self.state.log_start_offset,
                duplicate: true,
            });
        }
        let mut batch = batch.to_vec();
        let log_append_time = match self.config.timestamp_type {
            TimestampType::CreateTime => {
                if header.is_log_append_time() {
                    batch::patch_create_time(&mut batch, &mut header);
                }
                -1
            }
            TimestampType::LogAppendTime => {
                batch::patch_append_time(&mut batch, &mut header, now);
                now
            }
        };
        header.base_offset = self.state.next_offset;
        header.leader_epoch = self.state.leader_epoch();
        batch::patch_place(&mut batch, header.base_offset, header.leader_epoch);
        self.store(&header, &batch, None)?;
        Ok(self.appended(&header, log_append_time))
    }

    /// Whether these bytes begin with exactly one batch, whatever is in it.
    pub(crate) fn check_shape(records: &[u8]) -> Result<(), AppendError> {
        validate::single_batch(records).map(|_| ())
    }

    /// Ends the producer's transaction in this partition by a control batch; a marker without an open transaction is
    /// appended too, as Kafka does.
    pub fn append_marker(
        &mut self,
        producer_id: i64,
        producer_epoch: i16,
        commit: bool,
        coordinator_epoch: i32,
        now: i64,
    ) -> Result<Appended, AppendError> {
        self.state.producers.check_marker(producer_id, producer_epoch, coordinator_epoch)?;
        let marker = Marker { commit, coordinator_epoch };
        let (offset, epoch) = (self.state.next_offset, self.state.leader_epoch());
        let batch = marker.encode(offset, epoch, producer_id, producer_epoch, now);
        let header =
            BatchHeader::parse(&batch).map_err(|_| AppendError::Corrupt("the marker can't be read"))?;
        self.store(&header, &batch, Some(marker))?;
        Ok(self.appended(&header, -1))
    }

    /// Deletes what lies before an offset (-1: everything); returns the first offset of the log.
    pub fn delete_records(&mut self, before: i64) -> Result<i64, DeleteRecordsError> {
        if !self.config.delete {
            return Err(DeleteRecordsError::Policy);
        }
        let before = if before == -1 { self.high_watermark() } else { before };
        if before < 0 || before > self.high_watermark() {
            return Err(self.out_of_range(before).into());
        }
        if before > self.state.log_start_offset {
            if let Some(file) = &mut self.file {
                file.append_log_start(before)?;
            }
            self.state.set_log_start(before);
            self.chunks.remove_before(before);
            self.active.shrink(&self.chunks);
            self.drop_deleted();
        }
        Ok(self.state.log_start_offset)
    }

    /// The epoch and end offset for `OffsetForLeaderEpoch`; `(-1, -1)` if the epoch is not known.
    pub fn end_offset_for_epoch(&self, epoch: i32) -> (i32, i64) {
        self.state.end_offset_for_epoch(epoch)
    }

    /// Forgets producers that have neither appended since `before` (wall-clock milliseconds) nor a transaction open.
    pub fn expire_producers(&mut self, before: i64) {
        self.state.producers.expire(before);
    }

    /// The producers known here, by id.
    pub fn producers(&self) -> Vec<ProducerInfo> {
        self.state.producers.iter().map(|(producer_id, state)| Producers::info(producer_id, state)).collect()
    }

    /// One producer, if it is known here.
    pub fn producer(&self, producer_id: i64) -> Option<ProducerInfo> {
        self.state.producers.get(producer_id).map(|state| Producers::info(producer_id, state))
    }

    /// The first offset of the log.
    pub fn log_start_offset(&self) -> i64 {
        self.state.log_start_offset
    }

    /// The end of what is readable: with one broker, the end of the log.
    pub fn high_watermark(&self) -> i64 {
        self.state.next_offset
    }

    /// The first offset that read-committed readers don't see yet.
    pub fn last_stable_offset(&self) -> i64 {
        self.state.last_stable_offset()
    }

    /// The bytes of all batches in the log.
    pub fn size_bytes(&self) -> usize {
        self.chunks.size()
    }

    /// Where the active segment begins, which a cleaner leaves alone. As in Kafka, a batch that is too large or too new
    /// for the segment began the next one when it was appended.
    pub fn active_segment(&self) -> i64 {
        self.active.begin().unwrap_or(self.state.next_offset)
    }

    fn push(&mut self, header: &BatchHeader, batch: &[u8]) {
        self.chunks.push(header, batch);
        self.active.grow(&self.config, header, batch.len());
    }

    pub(super) fn out_of_range(&self, offset: i64) -> OutOfRange {
        OutOfRange {
            offset,
            log_start_offset: self.state.log_start_offset,
            log_end_offset: self.state.next_offset,
        }
    }

    /// Writes a batch to the file, then takes it in: a batch that can't be written changes nothing.
    fn store(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        marker: Option<Marker>,
    ) -> Result<(), AppendError> {
        if header.base_offset.checked_add(i64::from(header.last_offset_delta) + 1).is_none() {
            return Err(AppendError::InvalidRecord("the log has no offsets left"));
        }
        if let Some(file) = &mut self.file {
            file.append_batch(batch)?;
        }
        self.push(header, batch);
        self.state.apply(header, marker);
        Ok(())
    }

    fn appended(&self, header: &BatchHeader, log_append_time: i64) -> Appended {
        Appended {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            log_append_time,
            log_start_offset: self.state.log_start_offset,
            duplicate: false,
        }
    }

    /// Rewrites the file once most of it is deleted batches. They are deleted whether that succeeds or not.
    fn drop_deleted(&mut self) {
        let size = self.chunks.size() as u64;
        if let Some(file) = &mut self.file
            && file.len().saturating_sub(size) > size.max(MIN_DELETED)
            && let Err(error) =
                file.rewrite(&self.state.encode(), self.chunks.batches().map(|batch| batch.bytes))
        {
            tracing::warn!("deleted batches stay in the segment file: {error}");
        }
    }
}

/// The header of a batch that comes from the file, checked in full.
fn restorable(batch: &[u8]) -> Result<BatchHeader, batch::BatchError> {
    let header = BatchHeader::parse(batch)?;
    header.check_counts()?;
    header.verify(batch)?;
    Ok(header)
}
