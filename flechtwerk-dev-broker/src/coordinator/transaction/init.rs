//! InitProducerId: a producer takes over a transactional id (KIP-98), or goes on after an error of its own (KIP-360).

use super::Transactions;
use super::state::{NO_EPOCH, NO_ID, Transaction, is_exhausted};
use super::types::{InitRequest, TransactionState};
use crate::coordinator::journal::Entry;
use crate::coordinator::{Effects, ErrorCode, Millis, Now, Producer};

impl Transactions {
    /// InitProducerId. While the id's transaction is being completed the answer is `CONCURRENT_TRANSACTIONS`, and an open one is
    /// aborted first. `PRODUCER_FENCED` is for version 4 and above, see [`ErrorCode::without_producer_fenced`].
    pub fn init_producer_id(
        &mut self,
        now: Now,
        request: &InitRequest,
        out: &mut Effects,
    ) -> Result<Producer, ErrorCode> {
        let current = match (request.current.id, request.current.epoch) {
            (NO_ID, NO_EPOCH) => None,
            (NO_ID, _) | (_, NO_EPOCH) => return Err(ErrorCode::InvalidRequest),
            _ => Some(request.current),
        };
        let Some(transactional_id) = request.transactional_id.as_deref() else {
            return Ok(Producer::new(self.allocate_producer_id(out), 0));
        };
        if transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        if request.timeout_ms <= 0 || Millis::from_wire(request.timeout_ms) > self.settings.max_timeout {
            return Err(ErrorCode::InvalidTransactionTimeout);
        }
        if !self.ids.contains_key(transactional_id) {
            let producer_id = self.allocate_producer_id(out);
            self.ids.insert(transactional_id.to_owned(), Transaction::new(transactional_id, producer_id));
        }
        let next_producer_id = self.next_producer_id;
        let Some(transaction) = self.ids.get_mut(transactional_id) else {
            return Err(ErrorCode::InvalidProducerIdMapping);
        };
        if current.is_some_and(|current| !may_go_on(transaction, current)) {
            return Err(ErrorCode::ProducerFenced);
        }
        match transaction.record().state {
            TransactionState::PrepareCommit | TransactionState::PrepareAbort => {
                return Err(ErrorCode::ConcurrentTransactions);
            }
            TransactionState::Ongoing => {
                // The epoch of the fencing is never given out: the client asks again, and the next call bumps it once more.
                transaction.fence(now, out);
                return Err(ErrorCode::ConcurrentTransactions);
            }
            _ => {}
        }
        let (producer, last_epoch) = next_producer(transaction, current, next_producer_id)?;
        if producer.id == next_producer_id {
            self.allocate_producer_id(out);
        }
        let Some(transaction) = self.ids.get_mut(transactional_id) else {
            return Err(ErrorCode::InvalidProducerIdMapping);
        };
        transaction.init(now, producer, last_epoch, request.timeout_ms, &self.settings, out);
        Ok(producer)
    }

    fn allocate_producer_id(&mut self, out: &mut Effects) -> i64 {
        let id = self.next_producer_id;
        self.next_producer_id = id.saturating_add(1);
        out.records.push(Entry::NextProducerId(self.next_producer_id).into());
        id
    }
}

/// Whether a producer with this id may go on. Its epoch is looked at later.
fn may_go_on(transaction: &Transaction, current: Producer) -> bool {
    let record = transaction.record();
    // An id that is new here: the coordinator has forgotten the old one, and the producer takes the new.
    record.producer.epoch == NO_EPOCH
        || current.id == record.producer.id
        // The answer with a new producer id was lost, and the producer asks again with the old one.
        || (current.id == record.previous_id && is_exhausted(current.epoch))
}

/// The producer that InitProducerId gives out, and the epoch before it that a retry may name.
fn next_producer(
    transaction: &Transaction,
    current: Option<Producer>,
    fresh_id: i64,
) -> Result<(Producer, i16), ErrorCode> {
    let record = transaction.record();
    let Producer { id, epoch } = record.producer;
    if transaction.is_epoch_exhausted() {
        return match current {
            None => Ok((Producer::new(fresh_id, 0), NO_EPOCH)),
            Some(current) if current.epoch == epoch => Ok((Producer::new(fresh_id, 0), epoch)),
            // Its transaction was aborted on behalf of another, which took the epoch that is given to nobody.
            Some(current) if epoch == i16::MAX && current.epoch == record.last_epoch => {
                Ok((Producer::new(fresh_id, 0), record.last_epoch))
            }
            // The epoch it names is the one before, and the answer with the last epoch was lost.
            Some(current) if current.epoch == record.last_epoch => Ok((record.producer, record.last_epoch)),
            Some(_) => Err(ErrorCode::ProducerFenced),
        };
    }
    let bumped = Producer::new(id, epoch.saturating_add(1));
    match current {
        // A new producer takes over, and no retry of the old one may succeed.
        None => Ok((bumped, NO_EPOCH)),
        Some(current) if epoch == NO_EPOCH || current.epoch == epoch => Ok((bumped, epoch)),
        // A retry, whose first answer was lost. No other producer has come since, or the last epoch would be none.
        Some(current) if current.epoch == record.last_epoch => Ok((record.producer, record.last_epoch)),
        Some(_) => Err(ErrorCode::ProducerFenced),
    }
}
