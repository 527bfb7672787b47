//! All that a log knows besides its batches, how a batch changes it, and how it is kept.
//!
//! Appending and restoring go through the same [`LogState::apply`], so that an opened log knows what it knew before.

use super::batch::BatchHeader;
use super::marker::Marker;
use super::producers::{ProducerState, Producers, SentBatch};
use super::transactions::{Aborted, Transactions};

/// The version of the encoding.
const VERSION: u8 = 1;

/// A log without its batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogState {
    pub(crate) log_start_offset: i64,
    /// The offset of the next record: the end of the log.
    pub(crate) next_offset: i64,
    /// The leader epochs with the first offset of each.
    epochs: Vec<(i32, i64)>,
    pub(crate) producers: Producers,
    pub(crate) transactions: Transactions,
}

impl Default for LogState {
    fn default() -> Self {
        Self {
            log_start_offset: 0,
            next_offset: 0,
            epochs: vec![(0, 0)],
            producers: Producers::default(),
            transactions: Transactions::default(),
        }
    }
}

impl LogState {
    /// Takes in a batch that has been appended; `marker` is what a control batch says.
    pub(crate) fn apply(&mut self, header: &BatchHeader, marker: Option<Marker>) {
        self.begin_epoch(header.leader_epoch, header.base_offset);
        self.next_offset = header.last_offset().saturating_add(1);
        if header.is_control() {
            // A marker that compaction has emptied says nothing any more.
            let Some(marker) = marker else { return };
            if let Some(first) = self.producers.marked(header, marker.coordinator_epoch) {
                self.transactions.end(header.producer_id, first, header.base_offset, marker.commit);
            }
        } else if header.has_producer() && self.producers.appended(header) {
            self.transactions.begin(header.producer_id, header.base_offset);
        }
    }

    /// The first offset that read-committed readers don't see yet. As in Kafka, deleting records of an open transaction
    /// does not move it, so that it may lie before the start of the log.
    pub(crate) fn last_stable_offset(&self) -> i64 {
        self.transactions.first_open().unwrap_or(self.next_offset)
    }

    /// Moves the first offset of the log.
    pub(crate) fn set_log_start(&mut self, offset: i64) {
        self.log_start_offset = offset;
        self.next_offset = self.next_offset.max(offset);
        self.transactions.remove_before(offset);
    }

    /// The current leader epoch.
    pub(crate) fn leader_epoch(&self) -> i32 {
        self.epochs.last().map_or(0, |(epoch, _)| *epoch)
    }

    /// Begins a higher leader epoch; one without any record is forgotten.
    pub(crate) fn begin_epoch(&mut self, epoch: i32, offset: i64) {
        if epoch > self.leader_epoch() {
            while self.epochs.last().is_some_and(|(_, start)| *start >= offset) {
                self.epochs.pop();
            }
            self.epochs.push((epoch, offset));
        }
    }

    /// The leader epoch of the record at an offset.
    pub(crate) fn epoch_at(&self, offset: i64) -> i32 {
        let behind = self.epochs.partition_point(|(_, start)| *start <= offset);
        behind.checked_sub(1).and_then(|index| self.epochs.get(index)).map_or(-1, |(epoch, _)| *epoch)
    }

    /// The largest epoch up to the asked one, and where the next one begins; `(-1, -1)` for one not known.
    pub(crate) fn end_offset_for_epoch(&self, epoch: i32) -> (i32, i64) {
        if epoch == self.leader_epoch() {
            return (epoch, self.next_offset);
        }
        let higher = self.epochs.partition_point(|(known, _)| *known <= epoch);
        let Some((_, end)) = self.epochs.get(higher) else { return (-1, -1) };
        // As in Kafka, only -1 says that there is none; other numbers below 0 are epochs before the first.
        if epoch == -1 {
            return (-1, -1);
        }
        let floor = higher.checked_sub(1).and_then(|index| self.epochs.get(index));
        (floor.map_or(epoch, |(known, _)| *known), *end)
    }

    /// Writes all of it into bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.log_start_offset.to_be_bytes());
        out.extend_from_slice(&self.next_offset.to_be_bytes());
        put_count(self.epochs.len(), &mut out);
        for (epoch, start) in &self.epochs {
            out.extend_from_slice(&epoch.to_be_bytes());
            out.extend_from_slice(&start.to_be_bytes());
        }
        put_count(self.producers.iter().len(), &mut out);
        for (producer_id, state) in self.producers.iter() {
            out.extend_from_slice(&producer_id.to_be_bytes());
            put_producer(state, &mut out);
        }
        put_count(self.transactions.aborted().len(), &mut out);
        for aborted in self.transactions.aborted() {
            for number in
                [aborted.producer_id, aborted.first_offset, aborted.marker_offset, aborted.stable_offset]
            {
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        out
    }

    /// Reads what [`Self::encode`] wrote; `None` if it is anything else.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        if take(rest)? != [VERSION] {
            return None;
        }
        let mut state =
            Self { log_start_offset: get_i64(rest)?, next_offset: get_i64(rest)?, ..Self::default() };
        state.epochs.clear();
        for _ in 0..get_i32(rest)? {
            state.epochs.push((get_i32(rest)?, get_i64(rest)?));
        }
        for _ in 0..get_i32(rest)? {
            let producer_id = get_i64(rest)?;
            let producer = get_producer(rest)?;
            if let Some(first) = producer.transaction_start {
                state.transactions.begin(producer_id, first);
            }
            state.producers.insert(producer_id, producer);
        }
        let mut list = Vec::new();
        for _ in 0..get_i32(rest)? {
            list.push(Aborted {
                producer_id: get_i64(rest)?,
                first_offset: get_i64(rest)?,
                marker_offset: get_i64(rest)?,
                stable_offset: get_i64(rest)?,
            });
        }
        state.transactions.set_aborted(list);
        rest.is_empty().then_some(state)
    }
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&i32::try_from(count).unwrap_or(i32::MAX).to_be_bytes());
}

fn put_producer(state: &ProducerState, out: &mut Vec<u8>) {
    out.extend_from_slice(&state.epoch.to_be_bytes());
    out.extend_from_slice(&state.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&state.last_timestamp.to_be_bytes());
    out.extend_from_slice(&state.transaction_start.unwrap_or(-1).to_be_bytes());
    put_count(state.batches.len(), out);
    for batch in &state.batches {
        out.extend_from_slice(&batch.last_sequence.to_be_bytes());
        out.extend_from_slice(&batch.last_offset.to_be_bytes());
        out.extend_from_slice(&batch.last_offset_delta.to_be_bytes());
        out.extend_from_slice(&batch.timestamp.to_be_bytes());
    }
}

fn get_producer(rest: &mut &[u8]) -> Option<ProducerState> {
    let mut state = ProducerState {
        epoch: i16::from_be_bytes(take(rest)?),
        coordinator_epoch: get_i32(rest)?,
        last_timestamp: get_i64(rest)?,
        transaction_start: Some(get_i64(rest)?).filter(|first| *first >= 0),
        ..ProducerState::default()
    };
    for _ in 0..get_i32(rest)? {
        state.batches.push_back(SentBatch {
            last_sequence: get_i32(rest)?,
            last_offset: get_i64(rest)?,
            last_offset_delta: get_i32(rest)?,
            timestamp: get_i64(rest)?,
        });
    }
    Some(state)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*taken)
}

fn get_i64(rest: &mut &[u8]) -> Option<i64> {
    take(rest).map(i64::from_be_bytes)
}

fn get_i32(rest: &mut &[u8]) -> Option<i32> {
    take(rest).map(i32::from_be_bytes)
}
