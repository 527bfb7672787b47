//! Reading a log: batches for a fetch, and offsets by position or by time.

use super::batch::{BatchError, BatchHeader};
use super::chunks::StoredBatch;
use super::records::Records;
use super::{Fetched, FoundOffset, Isolation, OffsetSpec, OutOfRange, PartitionLog};

impl PartitionLog {
    /// Whole batches from the one that contains `from`, at most `max_bytes`; with `min_one_batch` the first one comes
    /// even if it is larger. An offset at the end, or in a hole before it, gives no bytes.
    ///
    /// May return less than `max_bytes` where more would have to be copied: read on from the offset that follows.
    pub fn read(
        &self,
        from: i64,
        max_bytes: usize,
        isolation: Isolation,
        min_one_batch: bool,
    ) -> Result<Fetched, OutOfRange> {
        if from < self.state.log_start_offset || from > self.state.next_offset {
            return Err(self.out_of_range(from));
        }
        let until = self.readable_end(isolation);
        let (records, next) = self.chunks.read(from, until, max_bytes, min_one_batch);
        let aborted = match isolation {
            Isolation::ReadCommitted if !records.is_empty() => {
                self.state.transactions.aborted_between(from, next)
            }
            Isolation::ReadCommitted | Isolation::ReadUncommitted => Vec::new(),
        };
        Ok(Fetched {
            records,
            high_watermark: self.high_watermark(),
            last_stable_offset: self.last_stable_offset(),
            log_start_offset: self.log_start_offset(),
            aborted,
        })
    }

    /// How many bytes a read from `from` would have before it, without limit: what a waiting fetch compares with its
    /// `min_bytes`. Nought where `from` is out of range.
    pub fn available_bytes(&self, from: i64, isolation: Isolation) -> usize {
        if from < self.state.log_start_offset {
            return 0;
        }
        self.chunks.bytes_between(from, self.readable_end(isolation))
    }

    /// Finds an offset; `None` where no record has such a timestamp (the protocol's -1).
    ///
    /// Records that can't be opened here (lz4, zstd) are found by their batch: its first offset.
    pub fn offset_for(&self, spec: OffsetSpec, isolation: Isolation) -> Option<FoundOffset> {
        let at = |offset| FoundOffset { offset, timestamp: -1, leader_epoch: self.state.epoch_at(offset) };
        let end = self.readable_end(isolation);
        match spec {
            OffsetSpec::Earliest => Some(at(self.state.log_start_offset)),
            OffsetSpec::Latest => Some(FoundOffset { leader_epoch: self.leader_epoch(), ..at(end) }),
            OffsetSpec::MaxTimestamp => {
                let largest = self.chunks.batches().map(|batch| batch.max_timestamp).max()?;
                self.first_since(largest).filter(|found| found.offset < end)
            }
            OffsetSpec::Timestamp(since) => self.first_since(since).filter(|found| found.offset < end),
        }
    }

    fn readable_end(&self, isolation: Isolation) -> i64 {
        match isolation {
            Isolation::ReadUncommitted => self.high_watermark(),
            Isolation::ReadCommitted => self.last_stable_offset(),
        }
    }

    fn first_since(&self, since: i64) -> Option<FoundOffset> {
        let start = self.state.log_start_offset;
        let mut candidates = self.chunks.batches_from(start).filter(|batch| batch.max_timestamp >= since);
        let (offset, timestamp) = candidates.find_map(|batch| first_in(&batch, since, start))?;
        Some(FoundOffset { offset, timestamp, leader_epoch: self.state.epoch_at(offset) })
    }
}

/// The first record of a batch with that timestamp or a later one, from an offset on.
fn first_in(batch: &StoredBatch<'_>, since: i64, start: i64) -> Option<(i64, i64)> {
    let header = BatchHeader::parse(batch.bytes).ok()?;
    let records = match Records::open(&header, batch.bytes) {
        Err(BatchError::Opaque) => return Some((batch.base_offset.max(start), batch.max_timestamp)),
        opened => opened.ok()?,
    };
    records.iter().map_while(Result::ok).find_map(|record| {
        let offset = header.base_offset.saturating_add(i64::from(record.offset_delta));
        let timestamp = header.timestamp(record.timestamp_delta);
        (timestamp >= since && offset >= start).then_some((offset, timestamp))
    })
}
