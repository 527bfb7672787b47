//! Fetch: batches out of partition logs, at once or when there are enough of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::FetchPartition;
use kafka_protocol::messages::fetch_response::{AbortedTransaction, FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::{FetchRequest, FetchResponse, ProducerId};
use tokio::sync::Notify;

use super::repeated::distinct;
use super::{Context, GONE, Outcome, Serve};
use crate::ErrorCode;
use crate::broker::state::State;
use crate::log::Isolation;

/// Epochs of sessions with which a client asks for everything.
const FULL_FETCH: i32 = 0;
const NO_SESSION: i32 = -1;
/// The most that one answer holds, as in Apache Kafka (`fetch.max.bytes`), whatever the client allows.
const MAX_ANSWER: usize = 55 * 1024 * 1024;

impl Serve for FetchRequest {
    type Answer = FetchResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> FetchResponse {
        let responses = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|wanted| failed(wanted.partition, error));
            FetchableTopicResponse::default()
                .with_topic(topic.topic.clone())
                .with_partitions(partitions.collect())
        });
        FetchResponse::default().with_responses(responses.collect())
    }

    async fn serve(mut self, context: &Context) -> Outcome<FetchResponse> {
        // There are no sessions: each answer says "session 0", and clients ask for everything every time.
        if !matches!(self.session_epoch, FULL_FETCH | NO_SESSION) {
            let error = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
            return Outcome::Answer(FetchResponse::default().with_error_code(error.code()));
        }
        let there = |state: &mut State| {
            self.partitions().any(|(topic, wanted)| state.topics.partition(topic, wanted.partition).is_some())
        };
        if !(0..=1).contains(&self.isolation_level) && context.with_logs(there) {
            let error = ErrorCode::UNKNOWN_SERVER_ERROR;
            let mut answer = self.refuse(context.version(), error).with_error_code(error.code());
            for partition in answer.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
                partition.aborted_transactions = Some(Vec::new());
            }
            return Outcome::Answer(answer);
        }
        let topics = std::mem::take(&mut self.topics);
        self.topics = distinct(topics, |wanted| wanted.partition, |first, next| *first = next);
        let patience = Duration::from_millis(u64::try_from(self.max_wait_ms).unwrap_or_default());
        let deadline = Instant::now() + patience.min(Duration::from_secs(86_400));
        let more = Arc::new(Notify::new());
        loop {
            let last = Instant::now() >= deadline;
            let found = context.with_logs(|state| {
                if last || self.enough(state, context.node) {
                    return Some(self.read(state, context.node));
                }
                for (topic, wanted) in self.partitions() {
                    if let Some(partition) = state.topics.partition_mut(topic, wanted.partition) {
                        partition.wait(&more);
                    }
                }
                None
            });
            if let Some(answer) = found {
                return Outcome::Answer(answer);
            }
            tokio::select! {
                () = more.notified() => {}
                () = tokio::time::sleep_until(deadline.into()) => {}
                () = context.peer.gone() => return Outcome::Close(GONE),
            }
        }
    }
}

/// What only this file asks of a fetch.
trait Reading {
    fn isolation(&self) -> Isolation;
    fn partitions(&self) -> impl Iterator<Item = (&str, &FetchPartition)>;
    fn enough(&self, state: &mut State, node: i32) -> bool;
    fn read(&self, state: &mut State, node: i32) -> FetchResponse;
}

impl Reading for FetchRequest {
    fn isolation(&self) -> Isolation {
        if self.isolation_level == 1 { Isolation::ReadCommitted } else { Isolation::ReadUncommitted }
    }

    fn partitions(&self) -> impl Iterator<Item = (&str, &FetchPartition)> {
        self.topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(move |wanted| (topic.topic.as_str(), wanted)))
    }

    /// Whether there is something to answer before the time is over: enough bytes, or an error.
    fn enough(&self, state: &mut State, node: i32) -> bool {
        let wanted_bytes = usize::try_from(self.min_bytes).unwrap_or_default();
        if wanted_bytes == 0 || self.topics.iter().all(|topic| topic.partitions.is_empty()) {
            return true;
        }
        let isolation = self.isolation();
        let mut bytes = 0usize;
        for (topic, wanted) in self.partitions() {
            let Ok(partition) =
                state.topics.led_by(node, topic, wanted.partition, wanted.current_leader_epoch)
            else {
                return true;
            };
            let log = &partition.log;
            if wanted.fetch_offset < log.log_start_offset() || wanted.fetch_offset > log.high_watermark() {
                return true;
            }
            let limit = usize::try_from(wanted.partition_max_bytes).unwrap_or_default();
            bytes =
                bytes.saturating_add(log.available_bytes(wanted.fetch_offset, isolation).min(limit.max(1)));
            if bytes >= wanted_bytes {
                return true;
            }
        }
        false
    }

    fn read(&self, state: &mut State, node: i32) -> FetchResponse {
        let isolation = self.isolation();
        let mut left = usize::try_from(self.max_bytes).unwrap_or_default().min(MAX_ANSWER);
        let mut empty = true;
        let mut responses = Vec::with_capacity(self.topics.len());
        for topic in &self.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for wanted in &topic.partitions {
                let limit = usize::try_from(wanted.partition_max_bytes).unwrap_or_default().min(left);
                let data = read_one(state, node, &topic.topic, wanted, limit, isolation, empty);
                let bytes = data.records.as_ref().map_or(0, Bytes::len);
                left = left.saturating_sub(bytes);
                empty &= bytes == 0;
                partitions.push(data);
            }
            responses.push(
                FetchableTopicResponse::default().with_topic(topic.topic.clone()).with_partitions(partitions),
            );
        }
        FetchResponse::default().with_responses(responses)
    }
}

fn read_one(
    state: &mut State,
    node: i32,
    topic: &str,
    wanted: &FetchPartition,
    limit: usize,
    isolation: Isolation,
    min_one_batch: bool,
) -> PartitionData {
    let partition = match state.topics.led_by(node, topic, wanted.partition, wanted.current_leader_epoch) {
        Ok(partition) => partition,
        // As a real Kafka writes it: empty where there is no such partition, and null for all other errors.
        Err(error @ ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
            return failed(wanted.partition, error).with_aborted_transactions(Some(Vec::new()));
        }
        Err(error) => return failed(wanted.partition, error),
    };
    let fetched = match partition.log.read(wanted.fetch_offset, limit, isolation, min_one_batch) {
        Ok(fetched) => fetched,
        Err(error) => return failed(wanted.partition, ErrorCode::new(error.code())),
    };
    let aborted = match isolation {
        Isolation::ReadUncommitted => None,
        Isolation::ReadCommitted => Some(
            fetched
                .aborted
                .into_iter()
                .map(|(producer_id, first_offset)| {
                    AbortedTransaction::default()
                        .with_producer_id(ProducerId(producer_id))
                        .with_first_offset(first_offset)
                })
                .collect(),
        ),
    };
    PartitionData::default()
        .with_partition_index(wanted.partition)
        .with_high_watermark(fetched.high_watermark)
        .with_last_stable_offset(fetched.last_stable_offset)
        .with_log_start_offset(fetched.log_start_offset)
        .with_aborted_transactions(aborted)
        .with_records(Some(fetched.records))
}

fn failed(partition: i32, error: ErrorCode) -> PartitionData {
    PartitionData::default()
        .with_partition_index(partition)
        .with_error_code(error.code())
        .with_high_watermark(-1)
        .with_last_stable_offset(-1)
        .with_log_start_offset(-1)
        .with_aborted_transactions(None)
        .with_records(Some(Bytes::new()))
}
