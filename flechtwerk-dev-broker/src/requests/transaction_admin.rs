//! DescribeTransactions, ListTransactions, DescribeProducers and WriteTxnMarkers.

use kafka_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::messages::describe_transactions_response::{TopicData, TransactionState as Described};
use kafka_protocol::messages::list_transactions_response::TransactionState as Listed;
use kafka_protocol::messages::write_txn_markers_request::WritableTxnMarker;
use kafka_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use kafka_protocol::messages::{
    DescribeProducersRequest, DescribeProducersResponse, DescribeTransactionsRequest,
    DescribeTransactionsResponse, ListTransactionsRequest, ListTransactionsResponse, ProducerId,
    TransactionalId, WriteTxnMarkersRequest, WriteTxnMarkersResponse,
};

use super::parts::Parts;
use super::text::{text, topic_name, transactional};
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::broker::state::State;
use crate::broker::{topics, wall};
use crate::coordinator::transaction::ListFilter;
use crate::fault::Subject;
use crate::log::ProducerInfo;

impl Serve for DescribeTransactionsRequest {
    type Answer = DescribeTransactionsResponse;
    const ASKS_FOR_MUCH: bool = true;

    fn subject(&self) -> Subject {
        match self.transactional_ids.as_slice() {
            [id] => Subject { transactional_id: Some(id.to_string()), group_id: None },
            _ => Subject::default(),
        }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> DescribeTransactionsResponse {
        let states = self.transactional_ids.iter().map(|id| failed(id, error));
        DescribeTransactionsResponse::default().with_transaction_states(states.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<DescribeTransactionsResponse> {
        let mut parts = Parts::new(context);
        let states: Result<_, _> = context.with(|state| {
            let part = |id: &&TransactionalId| match context.coordinates(state, id) {
                Ok(()) => described(state, id),
                Err(error) => failed(id, error),
            };
            self.transactional_ids.iter().map(|id| parts.part(id, part)).collect()
        });
        states.map(|states| DescribeTransactionsResponse::default().with_transaction_states(states)).into()
    }
}

fn failed(id: &TransactionalId, error: ErrorCode) -> Described {
    Described::default().with_transactional_id(id.clone()).with_error_code(error.code())
}

fn described(state: &State, id: &TransactionalId) -> Described {
    let found = match state.coordinators.transactions.describe(id) {
        Ok(found) => found,
        Err(error) => return failed(id, ErrorCode::new(error.code())),
    };
    let mut topics: Vec<TopicData> = Vec::new();
    let mut partitions = found.partitions;
    partitions.sort();
    for at in partitions {
        let name = topic_name(&at.topic);
        match topics.last_mut() {
            Some(topic) if topic.topic == name => topic.partitions.push(at.partition),
            _ => topics.push(TopicData::default().with_topic(name).with_partitions(vec![at.partition])),
        }
    }
    Described::default()
        .with_transactional_id(id.clone())
        .with_transaction_state(text(found.state.name()))
        .with_transaction_timeout_ms(found.timeout_ms)
        .with_transaction_start_time_ms(found.start)
        .with_producer_id(ProducerId(found.producer.id))
        .with_producer_epoch(found.producer.epoch)
        .with_topics(topics)
}

impl Serve for ListTransactionsRequest {
    type Answer = ListTransactionsResponse;
    const ASKS_FOR_MUCH: bool = true;

    fn refuse(&self, _version: i16, error: ErrorCode) -> ListTransactionsResponse {
        ListTransactionsResponse::default().with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<ListTransactionsResponse> {
        let filter = ListFilter {
            states: self.state_filters.iter().map(|name| name.to_string()).collect(),
            producer_ids: self.producer_id_filters.iter().map(|id| id.0).collect(),
            duration_ms: if context.version() >= 1 { self.duration_filter } else { -1 },
        };
        let listed = context.with(|state| {
            let mut listed = state.coordinators.transactions.list(state.now(), &filter);
            // Each node tells of the ids that it coordinates, so that a client that asks all has each id once.
            listed.transactions.retain(|one| context.coordinates(state, &one.transactional_id).is_ok());
            listed
        });
        let states = listed.transactions.into_iter().map(|one| {
            Listed::default()
                .with_transactional_id(transactional(&one.transactional_id))
                .with_producer_id(ProducerId(one.producer_id))
                .with_transaction_state(text(one.state.name()))
        });
        Outcome::Answer(
            ListTransactionsResponse::default()
                .with_unknown_state_filters(listed.unknown_states.into_iter().map(text).collect())
                .with_transaction_states(states.collect()),
        )
    }
}

impl Serve for DescribeProducersRequest {
    type Answer = DescribeProducersResponse;
    const ASKS_FOR_MUCH: bool = true;

    fn refuse(&self, _version: i16, error: ErrorCode) -> DescribeProducersResponse {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partition_indexes.iter().map(|index| {
                PartitionResponse::default().with_partition_index(*index).with_error_code(error.code())
            });
            TopicResponse::default().with_name(topic.name.clone()).with_partitions(partitions.collect())
        });
        DescribeProducersResponse::default().with_topics(topics.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<DescribeProducersResponse> {
        let mut parts = Parts::new(context);
        let topics: Result<_, _> = context.with(|state| {
            let mut part = |topic: &str, index: i32| {
                let response = PartitionResponse::default().with_partition_index(index);
                match state.topics.led_by(context.node, topic, index, -1) {
                    Err(error) => {
                        let legal = topics::check_name(topic);
                        let error = legal.map_or_else(|refusal| refusal.code, |()| error);
                        response.with_error_code(error.code())
                    }
                    Ok(partition) => response
                        .with_active_producers(partition.log.producers().into_iter().map(producer).collect()),
                }
            };
            let topics = self.topics.iter().map(|topic| {
                let partitions = topic.partition_indexes.iter();
                let partitions = partitions
                    .map(|index| parts.part((&topic.name, *index), |(topic, index)| part(topic, *index)));
                let partitions = partitions.collect::<Result<_, _>>()?;
                Ok(TopicResponse::default().with_name(topic.name.clone()).with_partitions(partitions))
            });
            topics.collect()
        });
        topics.map(|topics| DescribeProducersResponse::default().with_topics(topics)).into()
    }
}

fn producer(info: ProducerInfo) -> ProducerState {
    ProducerState::default()
        .with_producer_id(ProducerId(info.producer_id))
        .with_producer_epoch(i32::from(info.producer_epoch))
        .with_last_sequence(info.last_sequence)
        .with_last_timestamp(info.last_timestamp)
        .with_coordinator_epoch(info.coordinator_epoch)
        .with_current_txn_start_offset(info.current_txn_start_offset)
}

/// What a coordinator asks of leaders, and so does a tool that ends a transaction which hangs in one partition.
impl Serve for WriteTxnMarkersRequest {
    type Answer = WriteTxnMarkersResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> WriteTxnMarkersResponse {
        answered(&self.markers, |_, _, _| error)
    }

    async fn serve(self, context: &Context) -> Outcome<WriteTxnMarkersResponse> {
        Outcome::Answer(context.with_logs(|state| {
            answered(&self.markers, |marker, topic, partition| {
                write_marker(state, context.node, marker, topic, partition)
            })
        }))
    }
}

/// The answer to these markers, with what `each` says of a marker in a partition of a topic.
fn answered(
    markers: &[WritableTxnMarker],
    mut each: impl FnMut(&WritableTxnMarker, &str, i32) -> ErrorCode,
) -> WriteTxnMarkersResponse {
    let results = markers.iter().map(|marker| {
        let topics = marker.topics.iter().map(|topic| {
            let partitions = topic.partition_indexes.iter().map(|index| {
                WritableTxnMarkerPartitionResult::default()
                    .with_partition_index(*index)
                    .with_error_code(each(marker, &topic.name, *index).code())
            });
            WritableTxnMarkerTopicResult::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        WritableTxnMarkerResult::default().with_producer_id(marker.producer_id).with_topics(topics.collect())
    });
    WriteTxnMarkersResponse::default().with_markers(results.collect())
}

fn write_marker(
    state: &mut State,
    node: i32,
    marker: &WritableTxnMarker,
    topic: &str,
    partition: i32,
) -> ErrorCode {
    let partition = match state.topics.led_by(node, topic, partition, -1) {
        Ok(partition) => partition,
        Err(error) => return error,
    };
    let WritableTxnMarker { producer_id, producer_epoch, transaction_result, coordinator_epoch, .. } = marker;
    let written = partition.log.append_marker(
        producer_id.0,
        *producer_epoch,
        *transaction_result,
        *coordinator_epoch,
        wall(),
    );
    match written {
        Ok(_) => {
            partition.wake();
            ErrorCode::NONE
        }
        Err(error) => ErrorCode::new(error.code()),
    }
}
