//! Records: produce, fetch, list offsets, delete.

use bytes::Bytes;
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    BrokerId, DeleteRecordsRequest, FetchRequest, ListOffsetsRequest, ProduceRequest,
};

use crate::read::{ReadBatch, batches, visible};
use crate::{Answer, Batch, Client, Code, code, text, wait_for};

/// Isolation level: all records.
pub const UNCOMMITTED: i8 = 0;
/// Isolation level: only those of transactions that are committed.
pub const COMMITTED: i8 = 1;
/// In the place of a timestamp: the first offset.
pub const EARLIEST: i64 = -2;
/// In the place of a timestamp: the end.
pub const LATEST: i64 = -1;
/// In the place of a timestamp: the record with the highest one.
pub const MAX_TIMESTAMP: i64 = -3;

/// What a fetch of one partition has answered.
#[derive(Debug)]
pub struct Fetched {
    /// The answer, its records taken out.
    pub data: PartitionData,
    /// How many bytes of records there were.
    pub bytes: usize,
    /// The batches.
    pub batches: Vec<ReadBatch>,
    /// Producers and first offsets of aborted transactions.
    pub aborted: Vec<(i64, i64)>,
}

/// A request to write one batch.
pub fn produce_request(
    topic: &str,
    partition: i32,
    records: Bytes,
    transactional_id: Option<&str>,
) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(records));
    let topic = TopicProduceData::default().with_name(text(topic).into()).with_partition_data(vec![data]);
    ProduceRequest::default()
        .with_transactional_id(transactional_id.map(|id| text(id).into()))
        .with_acks(-1)
        .with_timeout_ms(10_000)
        .with_topic_data(vec![topic])
}

/// A request to read these partitions of a topic, from these offsets; it waits for nothing.
pub fn fetch_request(topic: &str, from: &[(i32, i64)], isolation: i8) -> FetchRequest {
    let partition = |(partition, offset): &(i32, i64)| {
        FetchPartition::default()
            .with_partition(*partition)
            .with_current_leader_epoch(-1)
            .with_fetch_offset(*offset)
            .with_last_fetched_epoch(-1)
            .with_log_start_offset(-1)
            .with_partition_max_bytes(1 << 20)
    };
    let topic = FetchTopic::default()
        .with_topic(text(topic).into())
        .with_partitions(from.iter().map(partition).collect());
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(0)
        .with_min_bytes(0)
        .with_max_bytes(16 << 20)
        .with_isolation_level(isolation)
        .with_session_id(0)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

/// The first partition's part of an answer.
pub fn fetched(mut data: PartitionData) -> Fetched {
    let records = data.records.take().unwrap_or_default();
    let aborted = data.aborted_transactions.take().unwrap_or_default();
    Fetched {
        data,
        bytes: records.len(),
        batches: batches(records),
        aborted: aborted.iter().map(|one| (one.producer_id.0, one.first_offset)).collect(),
    }
}

impl Client {
    /// Writes a batch, waits for all replicas; its first offset.
    #[track_caller]
    pub fn produce(&mut self, topic: &str, partition: i32, batch: &Batch) -> Answer<i64> {
        let answer = self.produce_as(topic, partition, batch.encode(), None);
        code(answer.error_code).map(|()| answer.base_offset)
    }

    /// Writes bytes, perhaps of a transaction; the whole answer.
    #[track_caller]
    pub fn produce_as(
        &mut self,
        topic: &str,
        partition: i32,
        records: Bytes,
        transactional_id: Option<&str>,
    ) -> PartitionProduceResponse {
        let mut answer = self.call(&produce_request(topic, partition, records, transactional_id));
        answer.responses.remove(0).partition_responses.remove(0)
    }

    /// Reads one partition, at once.
    #[track_caller]
    pub fn fetch(&mut self, topic: &str, partition: i32, from: i64, isolation: i8) -> Answer<Fetched> {
        let mut answer = self.call(&fetch_request(topic, &[(partition, from)], isolation));
        code(answer.error_code)?;
        let data = answer.responses.remove(0).partitions.remove(0);
        code(data.error_code)?;
        Ok(fetched(data))
    }

    /// What a consumer that starts at `from` sees: offsets and values.
    #[track_caller]
    pub fn read(&mut self, topic: &str, partition: i32, from: i64, isolation: i8) -> Vec<(i64, String)> {
        let mut seen = Vec::new();
        let mut position = from;
        loop {
            let fetched = self.fetch(topic, partition, position, isolation).expect("a fetch");
            seen.extend(visible(&fetched.batches, &fetched.aborted, position));
            match fetched.batches.last() {
                Some(last) => position = last.last_offset + 1,
                None => return seen,
            }
        }
    }

    /// The values alone of [`read`](Client::read), from the start.
    #[track_caller]
    pub fn values(&mut self, topic: &str, partition: i32, isolation: i8) -> Vec<String> {
        self.read(topic, partition, 0, isolation).into_iter().map(|(_, value)| value).collect()
    }

    /// The offset for a timestamp, or for one of the special ones.
    #[track_caller]
    pub fn list_offset(&mut self, topic: &str, partition: i32, timestamp: i64, isolation: i8) -> Answer<i64> {
        let answer = self.list_offset_full(topic, partition, timestamp, isolation);
        code(answer.error_code).map(|()| answer.offset)
    }

    /// The whole answer for a timestamp.
    #[track_caller]
    pub fn list_offset_full(
        &mut self,
        topic: &str,
        partition: i32,
        timestamp: i64,
        isolation: i8,
    ) -> ListOffsetsPartitionResponse {
        let one = ListOffsetsPartition::default()
            .with_partition_index(partition)
            .with_current_leader_epoch(-1)
            .with_timestamp(timestamp);
        let topic = ListOffsetsTopic::default().with_name(text(topic).into()).with_partitions(vec![one]);
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_isolation_level(isolation)
            .with_topics(vec![topic]);
        self.call(&request).topics.remove(0).partitions.remove(0)
    }

    /// The offset behind the last record.
    #[track_caller]
    pub fn end(&mut self, topic: &str, partition: i32) -> i64 {
        self.list_offset(topic, partition, LATEST, UNCOMMITTED).expect("the end offset")
    }

    /// The last stable offset.
    #[track_caller]
    pub fn stable_end(&mut self, topic: &str, partition: i32) -> i64 {
        self.list_offset(topic, partition, LATEST, COMMITTED).expect("the last stable offset")
    }

    /// Waits until no transaction is open in a partition; its end.
    #[track_caller]
    pub fn await_stable(&mut self, topic: &str, partition: i32) -> i64 {
        wait_for("all transactions have ended", || {
            self.stable_end(topic, partition) == self.end(topic, partition)
        });
        self.end(topic, partition)
    }

    /// Deletes the records before an offset; the new first offset.
    #[track_caller]
    pub fn delete_records(&mut self, topic: &str, partition: i32, before: i64) -> Answer<i64> {
        let one = DeleteRecordsPartition::default().with_partition_index(partition).with_offset(before);
        let topic = DeleteRecordsTopic::default().with_name(text(topic).into()).with_partitions(vec![one]);
        let request = DeleteRecordsRequest::default().with_timeout_ms(10_000).with_topics(vec![topic]);
        let answer = self.call(&request).topics.remove(0).partitions.remove(0);
        code(answer.error_code).map(|()| answer.low_watermark)
    }
}

/// Tells a fetch that failed from one that answered, for checks that expect the failure.
pub fn refusal<T: std::fmt::Debug>(answer: Answer<T>) -> Code {
    answer.expect_err("an error code")
}
