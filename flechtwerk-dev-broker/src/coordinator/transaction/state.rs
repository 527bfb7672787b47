//! One transactional id: its state, and the steps from one state to the next.

use std::sync::Arc;

use super::types::{TransactionSettings, TransactionState};
use crate::coordinator::journal::{Entry, TransactionRecord};
use crate::coordinator::{Effects, ErrorCode, Millis, Now, Producer, WriteMarkers};

/// No producer id.
pub(super) const NO_ID: i64 = -1;
/// No epoch.
pub(super) const NO_EPOCH: i16 = -1;

/// A transactional id. Each step replaces the record, which is all that is durable, and puts it into the journal.
pub(super) struct Transaction {
    record: Arc<TransactionRecord>,
    /// When the open transaction times out, or the id without one expires.
    deadline: Option<Millis>,
}

impl Transaction {
    /// A new id, whose epoch the first InitProducerId brings to 0.
    pub(super) fn new(transactional_id: &str, producer_id: i64) -> Self {
        let record = TransactionRecord {
            transactional_id: transactional_id.to_owned(),
            producer: Producer::new(producer_id, NO_EPOCH),
            previous_id: NO_ID,
            last_epoch: NO_EPOCH,
            timeout_ms: 0,
            state: TransactionState::Empty,
            partitions: Default::default(),
            groups: Default::default(),
            start: -1,
            updated: -1,
        };
        Self { record: Arc::new(record), deadline: None }
    }

    /// The id that a record describes. What was left of its time when the broker was killed goes on from now.
    pub(super) fn restored(record: Arc<TransactionRecord>, now: Now, settings: &TransactionSettings) -> Self {
        let mut restored = Self { record, deadline: None };
        restored.deadline = restored.due(now, settings);
        restored
    }

    pub(super) fn record(&self) -> &TransactionRecord {
        &self.record
    }

    pub(super) fn shared(&self) -> Arc<TransactionRecord> {
        self.record.clone()
    }

    pub(super) fn deadline(&self) -> Option<Millis> {
        self.deadline
    }

    pub(super) fn is(&self, state: TransactionState) -> bool {
        self.record.state == state
    }

    /// Whether it is decided and waits for its markers.
    pub(super) fn is_preparing(&self) -> bool {
        matches!(self.record.state, TransactionState::PrepareCommit | TransactionState::PrepareAbort)
    }

    /// Whether requests of this producer are for this id.
    pub(super) fn check_producer(&self, producer: Producer) -> Result<(), ErrorCode> {
        if self.record.producer.id != producer.id {
            Err(ErrorCode::InvalidProducerIdMapping)
        } else if self.record.producer.epoch != producer.epoch {
            Err(ErrorCode::ProducerFenced)
        } else {
            Ok(())
        }
    }

    /// The epoch is the last one given out for its producer id. One more is kept back, to fence with.
    pub(super) fn is_epoch_exhausted(&self) -> bool {
        is_exhausted(self.record.producer.epoch)
    }

    /// A step: changes the record and puts it into the journal.
    fn change(&mut self, now: Now, step: impl FnOnce(&mut TransactionRecord), out: &mut Effects) {
        let record = Arc::make_mut(&mut self.record);
        step(record);
        record.updated = now.wall;
        out.records.push(Entry::Transaction(self.record.clone()).into());
    }

    /// InitProducerId has succeeded with this producer.
    pub(super) fn init(
        &mut self,
        now: Now,
        producer: Producer,
        last_epoch: i16,
        timeout_ms: i32,
        settings: &TransactionSettings,
        out: &mut Effects,
    ) {
        self.change(
            now,
            |record| {
                record.previous_id = record.producer.id;
                record.producer = producer;
                record.last_epoch = last_epoch;
                record.timeout_ms = timeout_ms;
                record.state = TransactionState::Empty;
                record.partitions.clear();
                record.groups.clear();
                record.start = -1;
            },
            out,
        );
        self.deadline = self.due(now, settings);
    }

    /// Opens the transaction if it is not open yet, and adds to it.
    pub(super) fn open(&mut self, now: Now, add: impl FnOnce(&mut TransactionRecord), out: &mut Effects) {
        let opens = !self.is(TransactionState::Ongoing);
        self.change(
            now,
            |record| {
                if opens {
                    record.state = TransactionState::Ongoing;
                    record.start = now.wall;
                }
                add(record);
            },
            out,
        );
        if opens {
            self.deadline = Some(now.since_start.after(Millis::from_wire(self.record.timeout_ms)));
        }
    }

    /// Decides the open transaction, and asks for its markers.
    pub(super) fn decide(&mut self, now: Now, commit: bool, out: &mut Effects) {
        let state = if commit { TransactionState::PrepareCommit } else { TransactionState::PrepareAbort };
        self.change(now, |record| record.state = state, out);
        self.deadline = None;
        out.markers.extend(self.markers());
    }

    /// Aborts the open transaction with an epoch that was never given out, so that its producer can do nothing any more, but ask for
    /// that epoch (KIP-890), as long as no other takes over.
    pub(super) fn fence(&mut self, now: Now, out: &mut Effects) {
        let record = Arc::make_mut(&mut self.record);
        record.last_epoch = record.producer.epoch;
        record.producer.epoch = record.producer.epoch.saturating_add(1);
        self.decide(now, false, out);
    }

    /// The markers are written. Nothing happens if they belong to another transaction than the one that waits for them.
    pub(super) fn complete(
        &mut self,
        now: Now,
        markers: &WriteMarkers,
        settings: &TransactionSettings,
        out: &mut Effects,
    ) {
        let state = match self.record.state {
            TransactionState::PrepareCommit if markers.commit => TransactionState::CompleteCommit,
            TransactionState::PrepareAbort if !markers.commit => TransactionState::CompleteAbort,
            _ => return,
        };
        if self.record.producer != markers.producer {
            return;
        }
        self.change(
            now,
            |record| {
                record.state = state;
                record.partitions.clear();
                record.groups.clear();
            },
            out,
        );
        self.deadline = self.due(now, settings);
    }

    /// The markers it waits for.
    pub(super) fn markers(&self) -> Option<WriteMarkers> {
        self.is_preparing().then(|| WriteMarkers {
            transactional_id: self.record.transactional_id.clone(),
            producer: self.record.producer,
            commit: self.record.state == TransactionState::PrepareCommit,
            partitions: self.record.partitions.iter().cloned().collect(),
            groups: self.record.groups.iter().cloned().collect(),
        })
    }

    /// When something is due, by the wall clock, for what is left of it after a restart.
    fn due(&self, now: Now, settings: &TransactionSettings) -> Option<Millis> {
        let (since, span) = match self.record.state {
            TransactionState::Ongoing => (self.record.start, Millis::from_wire(self.record.timeout_ms)),
            TransactionState::PrepareCommit | TransactionState::PrepareAbort => return None,
            _ => (self.record.updated, settings.id_expiration?),
        };
        // A wall clock that was set back must not make it wait longer than from the start.
        let passed = u64::try_from(now.wall.saturating_sub(since)).unwrap_or(0);
        Some(now.since_start.after(Millis(span.0.saturating_sub(passed))))
    }
}

/// Whether this epoch is the last one that is given out for a producer id.
pub(super) fn is_exhausted(epoch: i16) -> bool {
    epoch >= i16::MAX - 1
}
