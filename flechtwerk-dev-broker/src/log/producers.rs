//! What a partition knows about each idempotent producer: its epoch, the sequence numbers of its last five batches, and
//! where its open transaction began.
//!
//! A check and the change that follows it are two steps, so that a batch that can't be stored changes nothing.

use std::collections::{BTreeMap, VecDeque};

use super::batch::{BatchHeader, sequence_before};
use super::{AppendError, ProducerInfo};

/// How many batches are remembered, so that one sent again is recognized: as many as a client has in flight at most.
const REMEMBERED: usize = 5;
const NO_EPOCH: i16 = -1;
const NO_SEQUENCE: i32 = -1;

/// A remembered batch of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentBatch {
    pub(crate) last_sequence: i32,
    pub(crate) last_offset: i64,
    pub(crate) last_offset_delta: i32,
    pub(crate) timestamp: i64,
}

impl SentBatch {
    fn base_sequence(&self) -> i32 {
        sequence_before(self.last_sequence, self.last_offset_delta)
    }

    pub(crate) fn base_offset(&self) -> i64 {
        self.last_offset.saturating_sub(i64::from(self.last_offset_delta))
    }
}

/// A producer as this partition knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProducerState {
    pub(crate) epoch: i16,
    /// The last batches of this epoch, the oldest first.
    pub(crate) batches: VecDeque<SentBatch>,
    pub(crate) coordinator_epoch: i32,
    pub(crate) last_timestamp: i64,
    pub(crate) transaction_start: Option<i64>,
}

impl Default for ProducerState {
    fn default() -> Self {
        Self {
            epoch: NO_EPOCH,
            batches: VecDeque::new(),
            coordinator_epoch: -1,
            last_timestamp: -1,
            transaction_start: None,
        }
    }
}

impl ProducerState {
    fn last_sequence(&self) -> i32 {
        self.batches.back().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    /// The offset of the last data record that is remembered.
    pub(crate) fn last_data_offset(&self) -> Option<i64> {
        self.batches.back().map(|batch| batch.last_offset)
    }

    fn set_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }
}

/// All producers of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Producers {
    known: BTreeMap<i64, ProducerState>,
}

impl Producers {
    /// Checks a producer's batch; `Some` is the batch that it repeats.
    ///
    /// A producer without any state may begin with any sequence number, as in Kafka: its state may have been lost with
    /// its records.
    pub(crate) fn check(&self, header: &BatchHeader) -> Result<Option<SentBatch>, AppendError> {
        let producer_id = header.producer_id;
        let Some(state) = self.known.get(&producer_id) else {
            return match header.producer_epoch {
                epoch if epoch < NO_EPOCH => {
                    Err(AppendError::InvalidProducerEpoch { producer_id, epoch, current: NO_EPOCH })
                }
                _ => Ok(None),
            };
        };
        let (sequence, last) = (header.base_sequence, state.last_sequence());
        if header.producer_epoch == state.epoch {
            let repeated = state.batches.iter().find(|sent| {
                sent.base_sequence() == sequence && sent.last_sequence == header.last_sequence()
            });
            if let Some(repeated) = repeated {
                return Ok(Some(*repeated));
            }
        }
        self.check_epoch(producer_id, header.producer_epoch)?;
        let in_order = match header.producer_epoch == state.epoch {
            _ if state.epoch == NO_EPOCH => true,
            true => i64::from(sequence) == i64::from(last) + 1 || (sequence == 0 && last == i32::MAX),
            false => sequence == 0,
        };
        if !in_order {
            let last = if header.producer_epoch == state.epoch { last } else { NO_SEQUENCE };
            return Err(AppendError::OutOfOrderSequence { producer_id, sequence, last });
        }
        if state.transaction_start.is_some() && !header.is_transactional() {
            return Err(AppendError::InvalidTxnState { producer_id });
        }
        Ok(None)
    }

    /// Notes a batch with its place in the log; true if it begins a transaction.
    pub(crate) fn appended(&mut self, header: &BatchHeader) -> bool {
        let state = self.known.entry(header.producer_id).or_default();
        state.set_epoch(header.producer_epoch);
        if state.batches.len() >= REMEMBERED {
            state.batches.pop_front();
        }
        state.batches.push_back(SentBatch {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            last_offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        });
        state.last_timestamp = header.max_timestamp;
        let begins = header.is_transactional() && state.transaction_start.is_none();
        if begins {
            state.transaction_start = Some(header.base_offset);
        }
        begins
    }

    /// Checks a marker: a lower epoch of the producer or of the coordinator is fenced.
    pub(crate) fn check_marker(
        &self,
        producer_id: i64,
        producer_epoch: i16,
        coordinator_epoch: i32,
    ) -> Result<(), AppendError> {
        self.check_epoch(producer_id, producer_epoch)?;
        match self.known.get(&producer_id) {
            Some(state) if coordinator_epoch < state.coordinator_epoch => {
                Err(AppendError::CoordinatorFenced {
                    producer_id,
                    epoch: coordinator_epoch,
                    current: state.coordinator_epoch,
                })
            }
            _ => Ok(()),
        }
    }

    /// Notes a marker; returns where the transaction that it ends began.
    pub(crate) fn marked(&mut self, header: &BatchHeader, coordinator_epoch: i32) -> Option<i64> {
        let state = self.known.entry(header.producer_id).or_default();
        state.set_epoch(header.producer_epoch);
        state.coordinator_epoch = coordinator_epoch;
        state.last_timestamp = header.max_timestamp;
        state.transaction_start.take()
    }

    /// Forgets who has neither appended since then nor a transaction open.
    pub(crate) fn expire(&mut self, before: i64) {
        self.known.retain(|_, state| state.transaction_start.is_some() || state.last_timestamp >= before);
    }

    pub(crate) fn get(&self, producer_id: i64) -> Option<&ProducerState> {
        self.known.get(&producer_id)
    }

    pub(crate) fn insert(&mut self, producer_id: i64, state: ProducerState) {
        self.known.insert(producer_id, state);
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (i64, &ProducerState)> {
        self.known.iter().map(|(producer_id, state)| (*producer_id, state))
    }

    /// The producer as it is shown.
    pub(crate) fn info(producer_id: i64, state: &ProducerState) -> ProducerInfo {
        ProducerInfo {
            producer_id,
            producer_epoch: state.epoch,
            last_sequence: state.last_sequence(),
            last_timestamp: state.last_timestamp,
            coordinator_epoch: state.coordinator_epoch,
            current_txn_start_offset: state.transaction_start.unwrap_or(-1),
        }
    }

    fn check_epoch(&self, producer_id: i64, epoch: i16) -> Result<(), AppendError> {
        match self.known.get(&producer_id) {
            Some(state) if epoch < state.epoch => {
                Err(AppendError::InvalidProducerEpoch { producer_id, epoch, current: state.epoch })
            }
            _ => Ok(()),
        }
    }
}
