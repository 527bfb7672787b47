//! Compaction as Kafka's cleaner does it: the newest value of each key stays, with its offset.
//!
//! Two passes over the batches before the active segment and before the first open transaction. The first notes the
//! newest offset of each key, without the data of aborted transactions. The second writes what is left:
//! - data of aborted transactions goes; a marker goes once no batch of its transaction is left and its delete horizon,
//!   set when that is first seen, has passed; a tombstone goes once its batch's horizon has passed
//! - the last batch of each producer, and the last batch of the whole pass, stay even without records, so that sequence
//!   numbers, epochs and the end of the pass are not lost

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::batch::{BatchError, BatchHeader, Compression};
use super::chunks::Chunks;
use super::marker::Marker;
use super::records::{Record, Records};
use super::transactions::Aborted;
use super::{CompactOptions, CompactReport, PartitionLog, StorageError, compression};

impl PartitionLog {
    /// Compacts as Kafka's cleaner does, whatever the topic's `cleanup.policy` says (check it before).
    pub fn compact(&mut self, now: i64, options: CompactOptions) -> Result<CompactReport, StorageError> {
        let before = self.size_bytes();
        let active = options.active_from.or(self.chunks.last_base_offset()).unwrap_or(0);
        let limit = active.min(self.last_stable_offset());
        let producers = self.state.producers.iter().len();
        let end = self.state.next_offset;
        let settled =
            |at: &Settled| (at.limit, at.end, at.producers) == (limit, end, producers) && now < at.until;
        if self.settled.as_ref().is_some_and(settled) {
            return Ok(CompactReport {
                bytes_before: before,
                bytes_after: before,
                ..CompactReport::default()
            });
        }
        let mut pass = Pass::new(self, now, limit);
        let newest = pass.newest_offsets(self);
        let mut left = Chunks::default();
        let mut until = i64::MAX;
        for batch in self.chunks.batches() {
            // A batch in memory has been checked when it came in.
            let Ok(header) = BatchHeader::parse(batch.bytes) else { continue };
            if batch.last_offset >= limit {
                left.push(&header, batch.bytes);
                continue;
            }
            if let Some(horizon) = header.delete_horizon().filter(|horizon| *horizon > now) {
                until = until.min(horizon);
            }
            match pass.clean(&header, batch.bytes, &newest) {
                Cleaned::Unchanged => left.push(&header, batch.bytes),
                Cleaned::Removed => {}
                Cleaned::Changed(header, body) => {
                    let bytes = header.encode(&body);
                    if let Ok(header) = BatchHeader::parse(&bytes) {
                        left.push(&header, &bytes);
                    }
                }
            }
        }
        let mut report = CompactReport { bytes_before: before, bytes_after: left.size(), ..pass.report };
        self.settled = (!pass.changed).then_some(Settled { limit, end, producers, until });
        if pass.changed {
            let mut state = self.state.clone();
            let open_end =
                self.state.transactions.aborted().iter().filter(|aborted| aborted.marker_offset >= limit);
            pass.kept_aborted.extend(open_end);
            state.transactions.set_aborted(pass.kept_aborted);
            if let Some(file) = &mut self.file {
                file.rewrite(&state.encode(), left.batches().map(|batch| batch.bytes))?;
            }
            self.state = state;
            self.chunks = left;
            self.active.shrink(&self.chunks);
        }
        report.bytes_after = self.size_bytes();
        if report.opaque_batches > 0 {
            tracing::warn!(
                batches = report.opaque_batches,
                "compaction leaves batches compressed by lz4 or zstd as they are"
            );
        }
        Ok(report)
    }
}

/// A compaction has changed nothing, and a new one up to the same offset wouldn't either before that time: periodic
/// compaction of a log at rest costs nothing. What a producer appends behind the limit lets its last batch before it go.
#[derive(Debug)]
pub(super) struct Settled {
    limit: i64,
    end: i64,
    producers: usize,
    until: i64,
}

enum Cleaned {
    Unchanged,
    Removed,
    Changed(BatchHeader, Vec<u8>),
}

/// Where a producer's last batch lies.
enum LastOfProducer {
    Data(i64),
    Marker(i16),
}

/// Tells which batches belong to aborted transactions while walking through the log in order.
#[derive(Default)]
struct Walk {
    /// Aborted transactions not reached yet, by their first offset.
    ahead: BTreeMap<i64, Aborted>,
    /// By producer: the aborted transaction that is being walked through, and whether any batch of it was met.
    aborting: HashMap<i64, (Aborted, bool)>,
    /// The producers with batches of a committed transaction whose marker was not met yet.
    committing: BTreeSet<i64>,
}

impl Walk {
    fn new(aborted: &[Aborted], limit: i64) -> Self {
        let reached = aborted.iter().filter(|aborted| aborted.first_offset < limit);
        Self { ahead: reached.map(|aborted| (aborted.first_offset, *aborted)).collect(), ..Self::default() }
    }

    fn reach(&mut self, offset: i64) {
        while let Some(entry) = self.ahead.first_entry().filter(|entry| *entry.key() <= offset) {
            let aborted = entry.remove();
            self.aborting.entry(aborted.producer_id).or_insert((aborted, false));
        }
    }

    /// A data batch: true if its transaction was aborted.
    fn data(&mut self, header: &BatchHeader) -> bool {
        self.reach(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        match self.aborting.get_mut(&header.producer_id) {
            Some((_, met)) => {
                *met = true;
                true
            }
            None => {
                self.committing.insert(header.producer_id);
                false
            }
        }
    }

    /// A control batch: whether its marker is of no use any more, and the aborted transaction that stays listed.
    fn control(&mut self, header: &BatchHeader, batch: &[u8]) -> (bool, Option<Aborted>) {
        self.reach(header.last_offset());
        match Marker::read(header, batch) {
            Ok(Some(Marker { commit: true, .. })) => (!self.committing.remove(&header.producer_id), None),
            Ok(Some(Marker { commit: false, .. })) => match self.aborting.remove(&header.producer_id) {
                Some((aborted, true)) => (false, Some(aborted)),
                _ => (true, None),
            },
            Ok(None) => (header.count == 0, None),
            Err(_) => (false, None),
        }
    }
}

/// One compaction.
struct Pass {
    now: i64,
    retention: i64,
    /// Nothing from this offset on is touched.
    limit: i64,
    /// The offset behind the last batch of the pass.
    end: i64,
    last_of_producers: HashMap<i64, LastOfProducer>,
    walk: Walk,
    kept_aborted: Vec<Aborted>,
    report: CompactReport,
    changed: bool,
}

impl Pass {
    fn new(log: &PartitionLog, now: i64, limit: i64) -> Self {
        let cleanable = log.chunks.batches().take_while(|batch| batch.last_offset < limit);
        let last_of_producers = log.state.producers.iter().map(|(producer_id, state)| {
            let last = match state.last_data_offset() {
                Some(offset) => LastOfProducer::Data(offset),
                None => LastOfProducer::Marker(state.epoch),
            };
            (producer_id, last)
        });
        Self {
            now,
            retention: log.config.delete_retention_ms.max(0),
            limit,
            end: cleanable.last().map_or(limit, |batch| batch.last_offset.saturating_add(1)),
            last_of_producers: last_of_producers.collect(),
            walk: Walk::new(log.state.transactions.aborted(), limit),
            kept_aborted: Vec::new(),
            report: CompactReport::default(),
            changed: false,
        }
    }

    /// The newest offset of each key; batches that can't be opened have no say.
    fn newest_offsets(&mut self, log: &PartitionLog) -> HashMap<Vec<u8>, i64> {
        let mut newest = HashMap::new();
        let mut walk = Walk::new(log.state.transactions.aborted(), self.limit);
        for batch in log.chunks.batches().take_while(|batch| batch.last_offset < self.limit) {
            let Ok(header) = BatchHeader::parse(batch.bytes) else { continue };
            if header.is_control() {
                walk.control(&header, batch.bytes);
                continue;
            }
            if walk.data(&header) {
                continue;
            }
            let Ok(records) = Records::open(&header, batch.bytes) else { continue };
            for record in records.iter().map_while(Result::ok) {
                if let Some(key) = record.key {
                    let offset = header.base_offset.saturating_add(i64::from(record.offset_delta));
                    newest.insert(key.to_vec(), offset);
                }
            }
        }
        newest
    }

    fn clean(&mut self, header: &BatchHeader, batch: &[u8], newest: &HashMap<Vec<u8>, i64>) -> Cleaned {
        let discard = if header.is_control() {
            let (useless, aborted) = self.walk.control(header, batch);
            self.kept_aborted.extend(aborted);
            let horizon = header.delete_horizon();
            let passed = horizon.is_some_and(|horizon| horizon <= self.now);
            if useless && horizon.is_none() && header.count > 0 {
                return self.rewrite(header, batch, |_, _| true, true);
            }
            useless && (passed || header.count == 0)
        } else {
            self.walk.data(header)
        };
        if discard {
            return self.empty(header);
        }
        if header.is_control() {
            return Cleaned::Unchanged;
        }
        let tombstones_stay = header.delete_horizon().is_none_or(|horizon| self.now < horizon);
        let stays = |header: &BatchHeader, record: &Record<'_>| {
            let offset = header.base_offset.saturating_add(i64::from(record.offset_delta));
            let is_newest =
                record.key.is_some_and(|key| newest.get(key).is_none_or(|newest| offset >= *newest));
            is_newest && (record.value.is_some() || tombstones_stay)
        };
        self.rewrite(header, batch, stays, false)
    }

    /// Removes all records of a batch; its header stays where something depends on it.
    fn empty(&mut self, header: &BatchHeader) -> Cleaned {
        let needed = match self.last_of_producers.get(&header.producer_id) {
            Some(LastOfProducer::Data(offset)) => header.last_offset() == *offset,
            Some(LastOfProducer::Marker(epoch)) => header.is_control() && header.producer_epoch == *epoch,
            None => false,
        };
        let needed = (header.has_producer() && needed) || header.last_offset().saturating_add(1) == self.end;
        if needed && header.count == 0 {
            return Cleaned::Unchanged;
        }
        self.changed = true;
        let removed = u64::try_from(header.count).unwrap_or(0);
        if header.is_control() {
            self.report.markers_removed += removed;
        } else {
            self.report.records_removed += removed;
        }
        if needed { Cleaned::Changed(header.emptied(), Vec::new()) } else { Cleaned::Removed }
    }

    /// Writes the batch with the records that stay. The delete horizon is set with the first tombstone that stays, or
    /// if asked to.
    fn rewrite(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        stays: impl Fn(&BatchHeader, &Record<'_>) -> bool,
        set_horizon: bool,
    ) -> Cleaned {
        match self.filtered(header, batch, stays, set_horizon) {
            Ok(Some(cleaned)) => cleaned,
            Ok(None) => self.empty(header),
            Err(error) => {
                if error == BatchError::Opaque {
                    self.report.opaque_batches += 1;
                }
                Cleaned::Unchanged
            }
        }
    }

    /// `None` if no record stays.
    fn filtered(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        stays: impl Fn(&BatchHeader, &Record<'_>) -> bool,
        set_horizon: bool,
    ) -> Result<Option<Cleaned>, BatchError> {
        let records = Records::open(header, batch)?;
        let all = records.iter().collect::<Result<Vec<_>, _>>()?;
        let kept: Vec<_> = all.iter().filter(|record| stays(header, record)).collect();
        let Some(first) = kept.first() else { return Ok(None) };
        let tombstone = !header.is_control() && kept.iter().any(|record| record.value.is_none());
        let set_horizon = (set_horizon || tombstone) && header.delete_horizon().is_none();
        if kept.len() == all.len() && !set_horizon {
            return Ok(Some(Cleaned::Unchanged));
        }
        let horizon =
            if set_horizon { Some(self.now.saturating_add(self.retention)) } else { header.delete_horizon() };
        let timestamp = |record: &Record<'_>| header.base_timestamp.saturating_add(record.timestamp_delta);
        let mut changed = *header;
        changed.set_delete_horizon(horizon, timestamp(first));
        changed.count = i32::try_from(kept.len()).unwrap_or(header.count);
        if !header.is_log_append_time() {
            changed.max_timestamp = kept.iter().map(|record| timestamp(record)).max().unwrap_or(-1);
        }
        let mut body = Vec::new();
        for record in &kept {
            record.write(timestamp(record).saturating_sub(changed.base_timestamp), &mut body);
        }
        let compression = header.compression()?;
        if compression != Compression::None {
            body = compression::compress(compression, body)?;
        }
        self.changed = true;
        self.report.records_removed += (all.len() - kept.len()) as u64;
        Ok(Some(Cleaned::Changed(changed, body)))
    }
}
