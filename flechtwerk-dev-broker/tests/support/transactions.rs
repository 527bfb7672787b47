//! A transactional producer that does one step at a time, each answered before the next.
//!
//! A step is an error where the connection was closed instead; else it gives the error code of the answer.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProducerId,
    TransactionalId, TxnOffsetCommitRequest,
};

use super::records::{Record, batch_of};
use super::{Client, produce, text, topic};

pub(crate) struct Producer {
    pub(crate) client: Client,
    name: String,
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    /// The next sequence number by topic and partition.
    sequences: HashMap<(String, i32), i32>,
}

impl Producer {
    /// Its epoch fences earlier ones of this name.
    pub(crate) fn new(address: SocketAddr, name: &str) -> Producer {
        let mut producer = Producer::unknown(Client::named(address, name), name);
        assert_eq!(producer.init().unwrap(), 0);
        producer
    }

    /// One that has not asked for its id yet.
    pub(crate) fn unknown(client: Client, name: &str) -> Producer {
        Producer { client, name: name.to_owned(), id: -1, epoch: -1, sequences: HashMap::new() }
    }

    fn transactional_id(&self) -> TransactionalId {
        TransactionalId(text(&self.name))
    }

    /// InitProducerId.
    pub(crate) fn init(&mut self) -> io::Result<i16> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(self.transactional_id()))
            .with_transaction_timeout_ms(60_000);
        let answer = self.client.try_call(2, &request)?;
        if answer.error_code == 0 {
            (self.id, self.epoch) = (answer.producer_id.0, answer.producer_epoch);
            self.sequences.clear();
        }
        Ok(answer.error_code)
    }

    /// AddPartitionsToTxn.
    pub(crate) fn add(&mut self, name: &str, partition: i32) -> io::Result<i16> {
        let topics =
            AddPartitionsToTxnTopic::default().with_name(topic(name)).with_partitions(vec![partition]);
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(self.transactional_id())
            .with_v3_and_below_producer_id(ProducerId(self.id))
            .with_v3_and_below_producer_epoch(self.epoch)
            .with_v3_and_below_topics(vec![topics]);
        let answer = self.client.try_call(2, &request)?;
        Ok(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
    }

    /// Produce: the offset of the first record. The same again until it is answered without an error.
    pub(crate) fn send(
        &mut self,
        name: &str,
        partition: i32,
        records: &[Record<'_>],
    ) -> io::Result<Result<i64, i16>> {
        let place = (name.to_owned(), partition);
        let sequence = self.sequences.get(&place).copied().unwrap_or(0);
        let batch = batch_of(Some((self.id, self.epoch, sequence)), records);
        let request = produce(name, partition, batch).with_transactional_id(Some(self.transactional_id()));
        let answer = self.client.try_call(7, &request)?;
        let partition = &answer.responses[0].partition_responses[0];
        if partition.error_code != 0 {
            return Ok(Err(partition.error_code));
        }
        self.sequences.insert(place, sequence + records.len() as i32);
        Ok(Ok(partition.base_offset))
    }

    /// AddOffsetsToTxn, and TxnOffsetCommit of one offset.
    pub(crate) fn commit_offset(
        &mut self,
        group: &str,
        (name, partition): (&str, i32),
        offset: i64,
        metadata: &str,
    ) -> io::Result<i16> {
        let request = AddOffsetsToTxnRequest::default()
            .with_transactional_id(self.transactional_id())
            .with_producer_id(ProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_group_id(text(group).into());
        let added = self.client.try_call(1, &request)?.error_code;
        if added != 0 {
            return Ok(added);
        }
        let committed = TxnOffsetCommitRequestPartition::default()
            .with_partition_index(partition)
            .with_committed_offset(offset)
            .with_committed_metadata(Some(text(metadata)));
        let committed =
            TxnOffsetCommitRequestTopic::default().with_name(topic(name)).with_partitions(vec![committed]);
        let request = TxnOffsetCommitRequest::default()
            .with_transactional_id(self.transactional_id())
            .with_group_id(text(group).into())
            .with_producer_id(ProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_topics(vec![committed]);
        Ok(self.client.try_call(2, &request)?.topics[0].partitions[0].error_code)
    }

    /// EndTxn.
    pub(crate) fn end(&mut self, commit: bool) -> io::Result<i16> {
        let request = EndTxnRequest::default()
            .with_transactional_id(self.transactional_id())
            .with_producer_id(ProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_committed(commit);
        Ok(self.client.try_call(1, &request)?.error_code)
    }

    /// A whole transaction that goes well.
    pub(crate) fn transaction(&mut self, name: &str, partition: i32, records: &[Record<'_>], commit: bool) {
        assert_eq!(self.add(name, partition).unwrap(), 0);
        self.send(name, partition, records).unwrap().unwrap();
        assert_eq!(self.end(commit).unwrap(), 0);
    }
}
