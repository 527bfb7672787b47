//! The transaction coordinator: who may write under a transactional id, and how each transaction ends.

mod types;

pub use types::{
    DescribedTransaction, InitRequest, ListFilter, Listed, ListedTransaction, TransactionSettings,
    TransactionState,
};

use super::{Effects, ErrorCode, Millis, Now, Producer, Record, TopicPartition, WriteMarkers};

/// All transactional ids of the broker, and the producer ids.
#[derive(Debug)]
pub struct Transactions {
    settings: TransactionSettings,
}

impl Transactions {
    /// No transactional ids yet.
    pub fn new(settings: TransactionSettings) -> Self {
        Self { settings }
    }

    /// InitProducerId. While the id's transaction is being completed the answer is `CONCURRENT_TRANSACTIONS`, and an open one is
    /// aborted first. `PRODUCER_FENCED` is for version 4 and above, see [`ErrorCode::without_producer_fenced`].
    pub fn init_producer_id(
        &mut self,
        _now: Now,
        _request: &InitRequest,
        _out: &mut Effects,
    ) -> Result<Producer, ErrorCode> {
        Ok(Producer::new(self.settings.first_producer_id, 0))
    }

    /// AddPartitionsToTxn: one code for all partitions.
    pub fn add_partitions(
        &mut self,
        _now: Now,
        _transactional_id: &str,
        _producer: Producer,
        _partitions: &[TopicPartition],
        _out: &mut Effects,
    ) -> ErrorCode {
        ErrorCode::None
    }

    /// AddOffsetsToTxn: the group becomes part of the transaction.
    pub fn add_offsets(
        &mut self,
        _now: Now,
        _transactional_id: &str,
        _producer: Producer,
        _group: &str,
        _out: &mut Effects,
    ) -> ErrorCode {
        ErrorCode::None
    }

    /// Whether the producer may append records to a partition in its transaction: before a transactional Produce.
    pub fn verify_partition(
        &self,
        _transactional_id: &str,
        _producer: Producer,
        _partition: &TopicPartition,
    ) -> ErrorCode {
        ErrorCode::None
    }

    /// Whether the producer may commit offsets to a group in its transaction: before a TxnOffsetCommit.
    pub fn verify_group(&self, _transactional_id: &str, _producer: Producer, _group: &str) -> ErrorCode {
        ErrorCode::None
    }

    /// EndTxn. Once the answer is no error, the transaction is decided, and its markers are an effect.
    pub fn end(
        &mut self,
        _now: Now,
        _transactional_id: &str,
        _producer: Producer,
        _commit: bool,
        _out: &mut Effects,
    ) -> ErrorCode {
        ErrorCode::None
    }

    /// The markers of a decided transaction are written. Does nothing if that transaction is no longer being completed.
    pub fn markers_written(&mut self, _now: Now, _markers: &WriteMarkers, _out: &mut Effects) {}

    /// DescribeTransactions, for one transactional id.
    pub fn describe(&self, _transactional_id: &str) -> Result<DescribedTransaction, ErrorCode> {
        Err(ErrorCode::TransactionalIdNotFound)
    }

    /// ListTransactions.
    pub fn list(&self, _now: Now, _filter: &ListFilter) -> Listed {
        Listed::default()
    }

    /// Does what is due by now: transactions that time out are aborted.
    pub fn tick(&mut self, _now: Now, _out: &mut Effects) {}

    /// When something is due next.
    pub fn next_deadline(&self) -> Option<Millis> {
        None
    }

    /// The records that build the durable state again, no more than it needs.
    pub fn snapshot(&self) -> Vec<Record> {
        Vec::new()
    }
}
