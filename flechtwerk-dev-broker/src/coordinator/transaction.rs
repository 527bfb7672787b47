//! The transaction coordinator: who may write under a transactional id, and how each transaction ends.
//!
//! The states are those of KIP-98, the rules for epochs those of KIP-360. Each transactional id is on its own; what they share is
//! the source of producer ids.

mod init;
mod query;
mod state;
#[cfg(test)]
mod tests;
mod types;

pub use types::{
    DescribedTransaction, InitRequest, ListFilter, Listed, ListedTransaction, TransactionSettings,
    TransactionState,
};

use std::collections::BTreeMap;
use std::fmt;

use super::journal::Entry;
use super::{Effects, ErrorCode, Millis, Now, Producer, Record, TopicPartition, WriteMarkers};
use state::Transaction;

/// All transactional ids of the broker, and the source of producer ids.
pub struct Transactions {
    settings: TransactionSettings,
    ids: BTreeMap<String, Transaction>,
    next_producer_id: i64,
}

impl fmt::Debug for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactions").field("transactional_ids", &self.ids.len()).finish_non_exhaustive()
    }
}

impl Transactions {
    /// No transactional ids yet.
    pub fn new(settings: TransactionSettings) -> Self {
        let next_producer_id = settings.first_producer_id.max(0);
        Self { settings, ids: BTreeMap::new(), next_producer_id }
    }

    /// AddPartitionsToTxn: one code for all partitions.
    pub fn add_partitions(
        &mut self,
        now: Now,
        transactional_id: &str,
        producer: Producer,
        partitions: &[TopicPartition],
        out: &mut Effects,
    ) -> ErrorCode {
        let transaction = match self.writable(transactional_id, producer) {
            Ok(transaction) => transaction,
            Err(error) => return error,
        };
        let known = partitions.iter().all(|partition| transaction.record().partitions.contains(partition));
        if !(transaction.is(TransactionState::Ongoing) && known) {
            transaction.open(now, |record| record.partitions.extend(partitions.iter().cloned()), out);
        }
        ErrorCode::None
    }

    /// AddOffsetsToTxn: the group becomes part of the transaction.
    pub fn add_offsets(
        &mut self,
        now: Now,
        transactional_id: &str,
        producer: Producer,
        group: &str,
        out: &mut Effects,
    ) -> ErrorCode {
        let transaction = match self.writable(transactional_id, producer) {
            Ok(transaction) => transaction,
            Err(error) => return error,
        };
        if !(transaction.is(TransactionState::Ongoing) && transaction.record().groups.contains(group)) {
            transaction.open(now, |record| record.groups.extend([group.to_owned()]), out);
        }
        ErrorCode::None
    }

    /// The transactional id, if this producer may add to its transaction.
    fn writable(
        &mut self,
        transactional_id: &str,
        producer: Producer,
    ) -> Result<&mut Transaction, ErrorCode> {
        if transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        let transaction = self.ids.get_mut(transactional_id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        transaction.check_producer(producer)?;
        if transaction.is_preparing() {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        Ok(transaction)
    }

    /// Whether the producer may append records to a partition in its transaction. To be asked before a transactional Produce, if the
    /// producer has no open transaction in the partition's log. The code is one that Produce knows.
    pub fn verify_partition(
        &self,
        transactional_id: &str,
        producer: Producer,
        partition: &TopicPartition,
    ) -> ErrorCode {
        self.verify(transactional_id, producer, |transaction| {
            transaction.record().partitions.contains(partition)
        })
    }

    /// Whether the producer may commit offsets to a group in its transaction. To be asked before a TxnOffsetCommit. The code is one
    /// that TxnOffsetCommit knows.
    pub fn verify_group(&self, transactional_id: &str, producer: Producer, group: &str) -> ErrorCode {
        self.verify(transactional_id, producer, |transaction| transaction.record().groups.contains(group))
    }

    fn verify(
        &self,
        transactional_id: &str,
        producer: Producer,
        contains: impl FnOnce(&Transaction) -> bool,
    ) -> ErrorCode {
        if transactional_id.is_empty() {
            return ErrorCode::InvalidRequest;
        }
        let Some(transaction) = self.ids.get(transactional_id) else {
            return ErrorCode::InvalidProducerIdMapping;
        };
        if let Err(error) = transaction.check_producer(producer) {
            return error.without_producer_fenced();
        }
        if transaction.is_preparing() {
            ErrorCode::ConcurrentTransactions
        } else if contains(transaction) {
            ErrorCode::None
        } else {
            ErrorCode::InvalidTxnState
        }
    }

    /// EndTxn. Once the answer is no error, the transaction is decided, and its markers are an effect, if they are not written yet.
    pub fn end(
        &mut self,
        now: Now,
        transactional_id: &str,
        producer: Producer,
        commit: bool,
        out: &mut Effects,
    ) -> ErrorCode {
        if transactional_id.is_empty() {
            return ErrorCode::InvalidRequest;
        }
        let Some(transaction) = self.ids.get_mut(transactional_id) else {
            return ErrorCode::InvalidProducerIdMapping;
        };
        if let Err(error) = transaction.check_producer(producer) {
            return error;
        }
        match (transaction.record().state, commit) {
            (TransactionState::Ongoing, _) => {
                transaction.decide(now, commit, out);
                ErrorCode::None
            }
            // The answer to the first request was lost.
            (TransactionState::CompleteCommit, true) | (TransactionState::CompleteAbort, false) => {
                ErrorCode::None
            }
            (TransactionState::PrepareCommit, true) | (TransactionState::PrepareAbort, false) => {
                ErrorCode::ConcurrentTransactions
            }
            _ => ErrorCode::InvalidTxnState,
        }
    }

    /// The markers of a decided transaction are written. Does nothing if that transaction is no longer being completed.
    pub fn markers_written(&mut self, now: Now, markers: &WriteMarkers, out: &mut Effects) {
        if let Some(transaction) = self.ids.get_mut(&markers.transactional_id) {
            transaction.complete(now, markers, &self.settings, out);
        }
    }

    /// Does what is due by now: transactions that time out are aborted, with the epoch bumped so that their producer is fenced.
    pub fn tick(&mut self, now: Now, out: &mut Effects) {
        let due = |transaction: &Transaction| transaction.deadline().is_some_and(|at| at <= now.since_start);
        for transaction in self.ids.values_mut().filter(|transaction| due(transaction)) {
            if transaction.is(TransactionState::Ongoing) {
                transaction.fence(now, out);
            }
        }
        // What is still due has no transaction: the id is old.
        self.ids.retain(|transactional_id, transaction| {
            let expired = due(transaction);
            if expired {
                out.records
                    .push(Entry::TransactionDeleted { transactional_id: transactional_id.clone() }.into());
            }
            !expired
        });
    }

    /// When something is due next.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.ids.values().filter_map(Transaction::deadline).min()
    }

    /// The records that build the durable state again, no more than it needs.
    pub fn snapshot(&self) -> Vec<Record> {
        let next = Entry::NextProducerId(self.next_producer_id);
        let ids = self.ids.values().map(|transaction| Entry::Transaction(transaction.shared()));
        std::iter::once(next).chain(ids).map(Record::from).collect()
    }

    /// Takes in what a record of the journal says.
    pub(super) fn replay(&mut self, now: Now, record: &Record) {
        match record.entry() {
            Entry::Transaction(record) => {
                let transaction = Transaction::restored(record.clone(), now, &self.settings);
                self.ids.insert(record.transactional_id.clone(), transaction);
            }
            Entry::TransactionDeleted { transactional_id } => {
                self.ids.remove(transactional_id);
            }
            Entry::NextProducerId(id) => self.next_producer_id = (*id).max(self.next_producer_id),
            _ => {}
        }
    }

    /// Asks for the markers of all transactions that are decided but not completed.
    pub(super) fn resume(&self, out: &mut Effects) {
        out.markers.extend(self.ids.values().filter_map(Transaction::markers));
    }
}
