//! Metadata, DescribeCluster and DescribeTopicPartitions: which nodes and topics there are, and who leads what.

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::describe_topic_partitions_response as partitions;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    BrokerId, DescribeClusterRequest, DescribeClusterResponse, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse, MetadataRequest, MetadataResponse,
};
use uuid::Uuid;

use super::repeated::once;
use super::text::{brokers, text, topic_name};
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::broker::NewTopic;
use crate::broker::nodes::Nodes;
use crate::broker::state::State;
use crate::broker::topics::{self, Partition, Topic};

/// "Not asked for" among the operations that a client is authorized for.
const NOT_ASKED: i32 = i32::MIN;
/// What a client may do with a topic where it is always told: everything. Bits by the numbers of Kafka's operations.
const ALL_OF_A_TOPIC: i32 = 0b1101_1111_1000;

impl Serve for MetadataRequest {
    type Answer = MetadataResponse;
    const ASKS_FOR_MUCH: bool = true;

    fn refuse(&self, _version: i16, error: ErrorCode) -> MetadataResponse {
        let topics = self.topics.iter().flatten().map(|topic| {
            MetadataResponseTopic::default()
                .with_error_code(error.code())
                .with_name(Some(topic.name.clone().unwrap_or_default()))
                .with_topic_id(topic.topic_id)
        });
        MetadataResponse::default()
            .with_cluster_id(None)
            .with_topics(topics.collect())
            .with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<MetadataResponse> {
        let version = context.version();
        Outcome::Answer(context.with(|state| {
            let mut answer = MetadataResponse::default()
                .with_cluster_id(Some(text(state.storage.cluster_id())))
                .with_controller_id(BrokerId(state.nodes.controller()));
            answer.brokers = state
                .nodes
                .up()
                .map(|node| {
                    MetadataResponseBroker::default()
                        .with_node_id(BrokerId(node.id))
                        .with_host(text(node.host.clone()))
                        .with_port(i32::from(node.port))
                })
                .collect();
            let all = match &self.topics {
                None => true,
                Some(topics) => version == 0 && topics.is_empty(),
            };
            answer.topics = if all {
                state.topics.iter().map(|(name, topic)| described(name, topic, &state.nodes)).collect()
            } else {
                let create = version < 4 || self.allow_auto_topic_creation;
                let wanted = self.topics.unwrap_or_default();
                // Where there is a name, the id means nothing.
                let key = |wanted: &MetadataRequestTopic| match &wanted.name {
                    Some(name) => (Some(name.clone()), Uuid::nil()),
                    None => (None, wanted.topic_id),
                };
                once(wanted, key, |_, _| {})
                    .into_iter()
                    .map(|wanted| match wanted.name {
                        Some(name) => by_name(state, &name, create),
                        None => by_id(state, wanted.topic_id, version),
                    })
                    .collect()
            };
            answer
        }))
    }
}

fn by_name(state: &mut State, name: &str, create: bool) -> MetadataResponseTopic {
    if state.topics.get(name).is_none() {
        let failed = |error: ErrorCode| {
            MetadataResponseTopic::default().with_error_code(error.code()).with_name(Some(topic_name(name)))
        };
        let new = NewTopic::new(name, 1);
        if let Err(refusal) = topics::check_name(name) {
            return failed(refusal.code);
        }
        if !(create && state.settings.auto_create_topics) {
            return failed(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
        if let Err(refusal) = state.topics.create(&new, &state.nodes, &mut state.storage) {
            return failed(refusal.code);
        }
    }
    match state.topics.get(name) {
        Some(topic) => described(name, topic, &state.nodes),
        None => MetadataResponseTopic::default(),
    }
}

fn by_id(state: &State, id: Uuid, version: i16) -> MetadataResponseTopic {
    match state.topics.name_of(id).and_then(|name| Some((name, state.topics.get(name)?))) {
        Some((name, topic)) => described(name, topic, &state.nodes),
        None => MetadataResponseTopic::default()
            .with_error_code(ErrorCode::UNKNOWN_TOPIC_ID.code())
            .with_name((version < 12).then(|| topic_name("")))
            .with_topic_id(id),
    }
}

fn described(name: &str, topic: &Topic, nodes: &Nodes) -> MetadataResponseTopic {
    let partitions = (0..).zip(&topic.partitions).map(|(index, partition)| {
        let (up, offline) = replicas(partition, nodes);
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(leader_error(partition).code())
            .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
            .with_leader_epoch(partition.log.leader_epoch())
            .with_replica_nodes(brokers(&partition.replicas))
            .with_isr_nodes(brokers(&up))
            .with_offline_replicas(brokers(&offline))
    });
    MetadataResponseTopic::default()
        .with_name(Some(topic_name(name)))
        .with_topic_id(topic.id)
        .with_partitions(partitions.collect())
}

fn leader_error(partition: &Partition) -> ErrorCode {
    if partition.leader.is_some() { ErrorCode::NONE } else { ErrorCode::LEADER_NOT_AVAILABLE }
}

/// The replicas in sync, which are those that are up, and the others.
fn replicas(partition: &Partition, nodes: &Nodes) -> (Vec<i32>, Vec<i32>) {
    partition.replicas.iter().partition(|id| nodes.is_up(**id))
}

impl Serve for DescribeClusterRequest {
    type Answer = DescribeClusterResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> DescribeClusterResponse {
        DescribeClusterResponse::default().with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<DescribeClusterResponse> {
        if context.version() >= 1 && self.endpoint_type != 1 {
            let error = if self.endpoint_type == 2 {
                ErrorCode::MISMATCHED_ENDPOINT_TYPE
            } else {
                ErrorCode::UNSUPPORTED_ENDPOINT_TYPE
            };
            return Outcome::Answer(self.refuse(context.version(), error));
        }
        Outcome::Answer(context.with(|state| {
            let nodes = state.nodes.up().map(|node| {
                DescribeClusterBroker::default()
                    .with_broker_id(BrokerId(node.id))
                    .with_host(text(node.host.clone()))
                    .with_port(i32::from(node.port))
            });
            DescribeClusterResponse::default()
                .with_cluster_id(text(state.storage.cluster_id()))
                .with_controller_id(BrokerId(state.nodes.controller()))
                .with_brokers(nodes.collect())
                .with_cluster_authorized_operations(NOT_ASKED)
        }))
    }
}

impl Serve for DescribeTopicPartitionsRequest {
    type Answer = DescribeTopicPartitionsResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> DescribeTopicPartitionsResponse {
        let topics = self.topics.iter().map(|topic| {
            partitions::DescribeTopicPartitionsResponseTopic::default()
                .with_name(Some(topic.name.clone()))
                .with_error_code(error.code())
        });
        DescribeTopicPartitionsResponse::default().with_topics(topics.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<DescribeTopicPartitionsResponse> {
        if let Some(cursor) = &self.cursor
            && !self.topics.is_empty()
            && self.topics.iter().all(|topic| topic.name != cursor.topic_name)
        {
            return Outcome::Answer(self.refuse(context.version(), ErrorCode::INVALID_REQUEST));
        }
        Outcome::Answer(context.with(|state| partition_page(state, &self)))
    }
}

/// One page: topics by name from the cursor on, until the limit of partitions is reached.
fn partition_page(
    state: &State,
    request: &DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let mut names: Vec<String> = if request.topics.is_empty() {
        state.topics.iter().map(|(name, _)| name.to_owned()).collect()
    } else {
        request.topics.iter().map(|topic| topic.name.to_string()).collect()
    };
    names.sort();
    names.dedup();
    let (from_topic, from_partition) = request
        .cursor
        .as_ref()
        .map_or((String::new(), 0), |cursor| (cursor.topic_name.to_string(), cursor.partition_index.max(0)));
    let mut left = usize::try_from(request.response_partition_limit.clamp(1, 2_000)).unwrap_or(2_000);
    let mut answer = DescribeTopicPartitionsResponse::default();
    for name in names.into_iter().filter(|name| *name >= from_topic) {
        let mut described = partitions::DescribeTopicPartitionsResponseTopic::default()
            .with_name(Some(topic_name(&name)))
            .with_topic_authorized_operations(ALL_OF_A_TOPIC);
        let Some(topic) = state.topics.get(&name) else {
            let error = match topics::check_name(&name) {
                Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                Err(refusal) => refusal.code,
            };
            answer.topics.push(described.with_error_code(error.code()));
            continue;
        };
        described.topic_id = topic.id;
        let first = if name == from_topic { from_partition } else { 0 };
        for (index, partition) in
            (0..).zip(&topic.partitions).skip(usize::try_from(first).unwrap_or_default())
        {
            if left == 0 {
                let next = partitions::Cursor::default()
                    .with_topic_name(topic_name(&name))
                    .with_partition_index(index);
                answer.next_cursor = Some(next);
                break;
            }
            left = left.saturating_sub(1);
            let (up, offline) = replicas(partition, &state.nodes);
            described.partitions.push(
                partitions::DescribeTopicPartitionsResponsePartition::default()
                    .with_partition_index(index)
                    .with_error_code(leader_error(partition).code())
                    .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
                    .with_leader_epoch(partition.log.leader_epoch())
                    .with_replica_nodes(brokers(&partition.replicas))
                    .with_isr_nodes(brokers(&up))
                    .with_eligible_leader_replicas(Some(Vec::new()))
                    .with_last_known_elr(Some(Vec::new()))
                    .with_offline_replicas(brokers(&offline)),
            );
        }
        if !described.partitions.is_empty() || answer.next_cursor.is_none() {
            answer.topics.push(described);
        }
        if answer.next_cursor.is_some() {
            break;
        }
    }
    answer
}
