//! InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit and EndTxn: a transaction from begin to end.

use std::collections::{BTreeSet, HashSet};

use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use kafka_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse,
    EndTxnRequest, EndTxnResponse, InitProducerIdRequest, InitProducerIdResponse, ProducerId, TopicName,
    TransactionalId, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
};

use super::offsets::{Known, missing_topics};
use super::repeated::{distinct, joined};
use super::text::maybe;
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::coordinator::group::{OffsetCommit, TxnCommitRequest};
use crate::coordinator::transaction::InitRequest;
use crate::coordinator::{self, Effects, Producer, TopicPartition};
use crate::fault::Subject;

fn transaction(id: &TransactionalId) -> Subject {
    Subject { transactional_id: Some(id.to_string()), group_id: None }
}

/// The code in a version that may not know `PRODUCER_FENCED` yet.
fn code(error: coordinator::ErrorCode, knows_fenced: bool) -> ErrorCode {
    let error = if knows_fenced { error } else { error.without_producer_fenced() };
    ErrorCode::new(error.code())
}

impl Serve for InitProducerIdRequest {
    type Answer = InitProducerIdResponse;

    fn subject(&self) -> Subject {
        self.transactional_id.as_ref().map(transaction).unwrap_or_default()
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> InitProducerIdResponse {
        InitProducerIdResponse::default()
            .with_error_code(error.code())
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1)
    }

    async fn serve(self, context: &Context) -> Outcome<InitProducerIdResponse> {
        let version = context.version();
        let request = InitRequest {
            transactional_id: self.transactional_id.as_ref().map(|id| id.to_string()),
            timeout_ms: self.transaction_timeout_ms,
            current: Producer::new(self.producer_id.0, self.producer_epoch),
        };
        let given = context.with(|state| {
            if let Some(id) = &request.transactional_id {
                context.coordinates(state, id)?;
            }
            let now = state.now();
            let mut effects = Effects::new();
            let given = state.coordinators.transactions.init_producer_id(now, &request, &mut effects);
            state.settle(effects);
            given.map_err(|error| code(error, version >= 4))
        });
        Outcome::Answer(match given {
            Ok(producer) => InitProducerIdResponse::default()
                .with_producer_id(ProducerId(producer.id))
                .with_producer_epoch(producer.epoch),
            Err(error) => self.refuse(version, error),
        })
    }
}

impl Serve for AddPartitionsToTxnRequest {
    type Answer = AddPartitionsToTxnResponse;

    fn subject(&self) -> Subject {
        transaction(&self.v3_and_below_transactional_id)
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> AddPartitionsToTxnResponse {
        added(self, |_| error)
    }

    async fn serve(self, context: &Context) -> Outcome<AddPartitionsToTxnResponse> {
        let version = context.version();
        let partitions: Vec<TopicPartition> = self
            .v3_and_below_topics
            .iter()
            .flat_map(|topic| {
                let name = topic.name.to_string();
                topic.partitions.iter().map(move |index| TopicPartition::new(name.clone(), *index))
            })
            .collect();
        let id = &self.v3_and_below_transactional_id;
        let producer = Producer::new(self.v3_and_below_producer_id.0, self.v3_and_below_producer_epoch);
        let unknown = |state: &crate::broker::state::State| -> BTreeSet<TopicPartition> {
            let missing = |at: &&TopicPartition| state.topics.partition(&at.topic, at.partition).is_none();
            partitions.iter().filter(missing).cloned().collect()
        };
        let result = context.with(|state| {
            context.coordinates(state, id).map_err(|error| (error, BTreeSet::new()))?;
            let unknown = unknown(state);
            if !unknown.is_empty() {
                return Err((ErrorCode::OPERATION_NOT_ATTEMPTED, unknown));
            }
            let now = state.now();
            let mut effects = Effects::new();
            let transactions = &mut state.coordinators.transactions;
            let error = transactions.add_partitions(now, id, producer, &partitions, &mut effects);
            state.settle(effects);
            Ok(code(error, version >= 2))
        });
        Outcome::Answer(match result {
            Ok(error) => self.refuse(version, error),
            Err((error, unknown)) => {
                let answer = added(&self, |at| {
                    if unknown.contains(at) { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION } else { error }
                });
                // As in Kafka, which has them in a table by now.
                AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(distinct(
                    answer.results_by_topic_v3_and_below,
                    |result| result.partition_index,
                    |_, _| {},
                ))
            }
        })
    }
}

fn added(
    request: &AddPartitionsToTxnRequest,
    error: impl Fn(&TopicPartition) -> ErrorCode,
) -> AddPartitionsToTxnResponse {
    let topics = request.v3_and_below_topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|index| {
            let at = TopicPartition::new(topic.name.to_string(), *index);
            AddPartitionsToTxnPartitionResult::default()
                .with_partition_index(*index)
                .with_partition_error_code(error(&at).code())
        });
        AddPartitionsToTxnTopicResult::default()
            .with_name(topic.name.clone())
            .with_results_by_partition(partitions.collect())
    });
    AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(topics.collect())
}

impl Serve for AddOffsetsToTxnRequest {
    type Answer = AddOffsetsToTxnResponse;

    fn subject(&self) -> Subject {
        Subject {
            transactional_id: Some(self.transactional_id.to_string()),
            group_id: Some(self.group_id.to_string()),
        }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> AddOffsetsToTxnResponse {
        AddOffsetsToTxnResponse::default().with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<AddOffsetsToTxnResponse> {
        let version = context.version();
        let error = context.with(|state| {
            if let Err(error) = context.coordinates(state, &self.transactional_id) {
                return error;
            }
            let now = state.now();
            let producer = Producer::new(self.producer_id.0, self.producer_epoch);
            let mut effects = Effects::new();
            let transactions = &mut state.coordinators.transactions;
            let error =
                transactions.add_offsets(now, &self.transactional_id, producer, &self.group_id, &mut effects);
            state.settle(effects);
            code(error, version >= 2)
        });
        Outcome::Answer(self.refuse(version, error))
    }
}

impl Serve for TxnOffsetCommitRequest {
    type Answer = TxnOffsetCommitResponse;

    fn subject(&self) -> Subject {
        Subject {
            transactional_id: Some(self.transactional_id.to_string()),
            group_id: Some(self.group_id.to_string()),
        }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> TxnOffsetCommitResponse {
        let all = self.topics.iter().map(|topic| topic.name.clone()).collect();
        committed(self, std::iter::repeat(error.code()), &all)
    }

    async fn serve(self, context: &Context) -> Outcome<TxnOffsetCommitResponse> {
        let version = context.version();
        let producer = Producer::new(self.producer_id.0, self.producer_epoch);
        let offsets: Vec<OffsetCommit> = self
            .topics
            .iter()
            .flat_map(|topic| {
                topic.partitions.iter().map(|partition| OffsetCommit {
                    partition: TopicPartition::new(topic.name.to_string(), partition.partition_index),
                    offset: partition.committed_offset,
                    leader_epoch: partition.committed_leader_epoch,
                    metadata: maybe(partition.committed_metadata.as_ref()),
                })
            })
            .collect();
        let mut any_unknown = false;
        let mut missing = HashSet::new();
        let codes = context.with(|state| {
            context.coordinates(state, &self.group_id)?;
            let (offsets, known) = Known::split(state, offsets, |offset| &offset.partition);
            missing = missing_topics(state, self.topics.iter().map(|topic| &topic.name));
            any_unknown = known.any_unknown() || !missing.is_empty();
            let transactions = &state.coordinators.transactions;
            if self.group_id.is_empty() {
                let error = ErrorCode::INVALID_GROUP_ID.code();
                return Ok(known.join(std::iter::repeat_n(error, offsets.len())));
            }
            let allowed = transactions.verify_group(&self.transactional_id, producer, &self.group_id);
            if !allowed.is_none() {
                return Ok(known.join(std::iter::repeat_n(code(allowed, false).code(), offsets.len())));
            }
            let has_member = version >= 3;
            let request = TxnCommitRequest {
                group: self.group_id.to_string(),
                producer,
                generation: if has_member { self.generation_id } else { -1 },
                member_id: if has_member { self.member_id.to_string() } else { String::new() },
                instance_id: maybe(self.group_instance_id.as_ref()),
                offsets,
            };
            let now = state.now();
            let mut effects = Effects::new();
            let codes = state.coordinators.groups.txn_commit_offsets(now, request, &mut effects);
            state.settle(effects);
            Ok(known.join(codes.into_iter().map(|error| code(error, false).code())))
        });
        Outcome::Answer(match codes {
            Ok(codes) if any_unknown => {
                let answer = committed(&self, codes, &missing);
                TxnOffsetCommitResponse::default().with_topics(joined(answer.topics))
            }
            Ok(codes) => committed(&self, codes, &missing),
            Err(error) => self.refuse(version, error),
        })
    }
}

fn committed(
    request: &TxnOffsetCommitRequest,
    codes: impl IntoIterator<Item = i16>,
    missing: &HashSet<TopicName>,
) -> TxnOffsetCommitResponse {
    let mut codes = codes.into_iter();
    let topics = request
        .topics
        .iter()
        .filter(|topic| !topic.partitions.is_empty() || missing.contains(&topic.name))
        .map(|topic| {
            let partitions = topic.partitions.iter().zip(codes.by_ref()).map(|(partition, code)| {
                TxnOffsetCommitResponsePartition::default()
                    .with_partition_index(partition.partition_index)
                    .with_error_code(code)
            });
            TxnOffsetCommitResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
    TxnOffsetCommitResponse::default().with_topics(topics.collect())
}

impl Serve for EndTxnRequest {
    type Answer = EndTxnResponse;

    fn subject(&self) -> Subject {
        transaction(&self.transactional_id)
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> EndTxnResponse {
        EndTxnResponse::default().with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<EndTxnResponse> {
        let version = context.version();
        let error = context.with(|state| {
            if let Err(error) = context.coordinates(state, &self.transactional_id) {
                return error;
            }
            let now = state.now();
            let producer = Producer::new(self.producer_id.0, self.producer_epoch);
            let mut effects = Effects::new();
            let transactions = &mut state.coordinators.transactions;
            let error = transactions.end(now, &self.transactional_id, producer, self.committed, &mut effects);
            state.settle(effects);
            code(error, version >= 2)
        });
        Outcome::Answer(self.refuse(version, error))
    }
}
