//! ListOffsets, OffsetForLeaderEpoch and DeleteRecords: where a log begins, ends, and what lies between.

use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, ListOffsetsRequest, ListOffsetsResponse,
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};

use super::repeated::distinct;
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::log::{Isolation, OffsetSpec};

/// The special timestamps of ListOffsets.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
/// In the place of the timestamps of a partition that a request names more than once. No client can mean it.
const TWICE: i64 = i64::MIN + 1;

impl Serve for ListOffsetsRequest {
    type Answer = ListOffsetsResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> ListOffsetsResponse {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|wanted| no_offset(wanted.partition_index, error));
            ListOffsetsTopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        ListOffsetsResponse::default().with_topics(topics.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<ListOffsetsResponse> {
        let version = context.version();
        let isolation = match self.isolation_level {
            0 => Isolation::ReadUncommitted,
            1 => Isolation::ReadCommitted,
            _ => return Outcome::Answer(self.refuse(version, ErrorCode::UNKNOWN_SERVER_ERROR)),
        };
        let wanted =
            distinct(self.topics, |wanted| wanted.partition_index, |first, _| first.timestamp = TWICE);
        let topics = context.with(|state| {
            let mut topics = Vec::with_capacity(wanted.len());
            for topic in &wanted {
                let partitions = topic.partitions.iter().map(|wanted| {
                    let spec = match wanted.timestamp {
                        LATEST => OffsetSpec::Latest,
                        EARLIEST => OffsetSpec::Earliest,
                        MAX_TIMESTAMP if version >= 7 => OffsetSpec::MaxTimestamp,
                        TWICE => return no_offset(wanted.partition_index, ErrorCode::INVALID_REQUEST),
                        timestamp if timestamp >= 0 => OffsetSpec::Timestamp(timestamp),
                        _ => return no_offset(wanted.partition_index, ErrorCode::UNSUPPORTED_VERSION),
                    };
                    let epoch = wanted.current_leader_epoch;
                    let led = state.topics.led_by(context.node, &topic.name, wanted.partition_index, epoch);
                    match led.map(|partition| partition.log.offset_for(spec, isolation)) {
                        Err(error) => no_offset(wanted.partition_index, error),
                        Ok(None) => no_offset(wanted.partition_index, ErrorCode::NONE),
                        Ok(Some(found)) => ListOffsetsPartitionResponse::default()
                            .with_partition_index(wanted.partition_index)
                            .with_timestamp(found.timestamp)
                            .with_offset(found.offset)
                            .with_leader_epoch(if version >= 4 { found.leader_epoch } else { -1 }),
                    }
                });
                let partitions = partitions.collect();
                topics.push(
                    ListOffsetsTopicResponse::default()
                        .with_name(topic.name.clone())
                        .with_partitions(partitions),
                );
            }
            topics
        });
        Outcome::Answer(ListOffsetsResponse::default().with_topics(topics))
    }
}

fn no_offset(partition: i32, error: ErrorCode) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse::default()
        .with_partition_index(partition)
        .with_error_code(error.code())
        .with_timestamp(-1)
        .with_offset(-1)
        .with_leader_epoch(-1)
}

impl Serve for OffsetForLeaderEpochRequest {
    type Answer = OffsetForLeaderEpochResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> OffsetForLeaderEpochResponse {
        let topics = self.topics.iter().map(|topic| {
            let partitions =
                topic.partitions.iter().map(|wanted| epoch_end(wanted.partition, error, (-1, -1)));
            OffsetForLeaderTopicResult::default()
                .with_topic(topic.topic.clone())
                .with_partitions(partitions.collect())
        });
        OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<OffsetForLeaderEpochResponse> {
        let topics = context.with(|state| {
            let mut topics = Vec::with_capacity(self.topics.len());
            for topic in &self.topics {
                let partitions = topic.partitions.iter().map(|wanted| {
                    let epoch = wanted.current_leader_epoch;
                    match state.topics.led_by(context.node, &topic.topic, wanted.partition, epoch) {
                        Err(error) => epoch_end(wanted.partition, error, (-1, -1)),
                        Ok(partition) => {
                            let end = partition.log.end_offset_for_epoch(wanted.leader_epoch);
                            epoch_end(wanted.partition, ErrorCode::NONE, end)
                        }
                    }
                });
                let partitions = partitions.collect();
                topics.push(
                    OffsetForLeaderTopicResult::default()
                        .with_topic(topic.topic.clone())
                        .with_partitions(partitions),
                );
            }
            topics
        });
        Outcome::Answer(OffsetForLeaderEpochResponse::default().with_topics(topics))
    }
}

fn epoch_end(partition: i32, error: ErrorCode, (epoch, offset): (i32, i64)) -> EpochEndOffset {
    EpochEndOffset::default()
        .with_partition(partition)
        .with_error_code(error.code())
        .with_leader_epoch(epoch)
        .with_end_offset(offset)
}

impl Serve for DeleteRecordsRequest {
    type Answer = DeleteRecordsResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> DeleteRecordsResponse {
        let topics = self.topics.iter().map(|topic| {
            let partitions =
                topic.partitions.iter().map(|wanted| deleted(wanted.partition_index, Err(error)));
            DeleteRecordsTopicResult::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        DeleteRecordsResponse::default().with_topics(topics.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<DeleteRecordsResponse> {
        let wanted = distinct(self.topics, |wanted| wanted.partition_index, |first, next| *first = next);
        let topics = context.with(|state| {
            let mut topics = Vec::with_capacity(wanted.len());
            for topic in &wanted {
                let partitions = topic.partitions.iter().map(|wanted| {
                    let led = state.topics.led_by(context.node, &topic.name, wanted.partition_index, -1);
                    let result = led.and_then(|partition| {
                        let deleted = partition.log.delete_records(wanted.offset);
                        partition.wake();
                        deleted.map_err(|error| ErrorCode::new(error.code()))
                    });
                    deleted(wanted.partition_index, result)
                });
                let partitions = partitions.collect();
                topics.push(
                    DeleteRecordsTopicResult::default()
                        .with_name(topic.name.clone())
                        .with_partitions(partitions),
                );
            }
            topics
        });
        Outcome::Answer(DeleteRecordsResponse::default().with_topics(topics))
    }
}

fn deleted(partition: i32, result: Result<i64, ErrorCode>) -> DeleteRecordsPartitionResult {
    let (low_watermark, error) = match result {
        Ok(low_watermark) => (low_watermark, ErrorCode::NONE),
        Err(error) => (-1, error),
    };
    DeleteRecordsPartitionResult::default()
        .with_partition_index(partition)
        .with_low_watermark(low_watermark)
        .with_error_code(error.code())
}
