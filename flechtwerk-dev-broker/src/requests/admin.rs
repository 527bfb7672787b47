//! CreateTopics, DeleteTopics and CreatePartitions.

use std::collections::BTreeSet;

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse,
};
use uuid::Uuid;

use super::repeated::once;
use super::text::{text, topic_name};
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::broker::config::{self, TOPIC_CONFIGS, TopicConfigs, value};
use crate::broker::state::State;
use crate::broker::topics::MAX_NEW_PARTITIONS;
use crate::broker::{NewTopic, Refusal};
use crate::coordinator::Effects;

impl Serve for CreateTopicsRequest {
    type Answer = CreateTopicsResponse;
    const ASKS_FOR_MUCH: bool = true;

    fn refuse(&self, _version: i16, error: ErrorCode) -> CreateTopicsResponse {
        let topics = self.topics.iter().map(|topic| {
            CreatableTopicResult::default()
                .with_name(topic.name.clone())
                .with_error_code(error.code())
                .with_error_message(Some(text(error.to_string())))
        });
        CreateTopicsResponse::default().with_topics(topics.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<CreateTopicsResponse> {
        let twice = twice(self.topics.iter().map(|topic| topic.name.as_str()));
        let distinct = once(&self.topics, |topic| &topic.name, |_, _| {});
        let single = distinct.iter().filter(|topic| !twice.contains(topic.name.as_str()));
        let too_many = single.map(|topic| new_partitions(topic)).sum::<i64>() > i64::from(MAX_NEW_PARTITIONS);
        let topics = context.with(|state| {
            let mut results: Vec<CreatableTopicResult> = Vec::with_capacity(distinct.len());
            for topic in distinct {
                let created = if twice.contains(topic.name.as_str()) {
                    Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."))
                } else if too_many {
                    let why = "Excessively large number of partitions per request.";
                    Err(Refusal::new(ErrorCode::POLICY_VIOLATION, why))
                } else {
                    create(state, topic, self.validate_only)
                };
                results.push(created.unwrap_or_else(|refusal| {
                    CreatableTopicResult::default()
                        .with_name(topic.name.clone())
                        .with_error_code(refusal.code.code())
                        .with_error_message(Some(text(refusal.message)))
                        .with_configs(Some(Vec::new()))
                }));
            }
            results
        });
        Outcome::Answer(CreateTopicsResponse::default().with_topics(topics))
    }
}

/// How many partitions a new topic counts for among those of its request.
fn new_partitions(topic: &CreatableTopic) -> i64 {
    match topic.num_partitions {
        _ if !topic.assignments.is_empty() => i64::try_from(topic.assignments.len()).unwrap_or(i64::MAX),
        -1 => 1,
        count => i64::from(count.max(0)),
    }
}

fn create(
    state: &mut State,
    topic: &CreatableTopic,
    validate_only: bool,
) -> Result<CreatableTopicResult, Refusal> {
    state.topics.check_new_name(&topic.name)?;
    let mut new =
        NewTopic::new(topic.name.to_string(), topic.num_partitions).replication(topic.replication_factor);
    for config in &topic.configs {
        let Some(value) = &config.value else {
            let why = format!("Null value not supported for topic configs: {}", config.name.as_str());
            return Err(Refusal::new(ErrorCode::INVALID_CONFIG, why));
        };
        config::check(&config.name, Some(value))?;
        new = new.config(config.name.to_string(), value.to_string());
    }
    if !topic.assignments.is_empty() {
        if topic.num_partitions != -1 || topic.replication_factor != -1 {
            let why = "A manual partition assignment was specified, but numPartitions or replicationFactor was not -1.";
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
        }
        let assigned = topic
            .assignments
            .iter()
            .map(|assignment| {
                (assignment.partition_index, assignment.broker_ids.iter().map(|id| id.0).collect())
            })
            .collect();
        (new.partitions, new.replication) = assigned_shape(state, assigned)?;
    }
    let (partitions, replication, id, configs) = if validate_only {
        let (partitions, replication) = state.topics.check_new(&new, &state.nodes)?;
        (partitions, replication, Uuid::nil(), config::of_new_topic(&new.configs))
    } else {
        let created = state.topics.create(&new, &state.nodes, &mut state.storage)?;
        (created.partition_count(), created.replication, created.id, created.configs.clone())
    };
    Ok(CreatableTopicResult::default()
        .with_name(topic.name.clone())
        .with_topic_id(id)
        .with_num_partitions(partitions)
        .with_replication_factor(replication)
        .with_configs(Some(shown(&configs))))
}

/// How many partitions and replicas a manual assignment means. Which nodes it names is checked, and then chosen by the
/// broker all the same: one process holds them all.
fn assigned_shape(state: &State, mut assigned: Vec<(i32, Vec<i32>)>) -> Result<(i32, i16), Refusal> {
    let invalid = |why: &str| Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, why));
    assigned.sort();
    let replicas = assigned.first().map_or(0, |(_, nodes)| nodes.len());
    for (expected, (partition, nodes)) in (0..).zip(&assigned) {
        if *partition != expected {
            return invalid("partitions should be a consecutive 0-based integer sequence");
        }
        if nodes.is_empty() || nodes.len() != replicas {
            return invalid("all partitions need the same number of replicas");
        }
        if nodes.iter().collect::<BTreeSet<_>>().len() != nodes.len() {
            return invalid("a replica is assigned twice");
        }
        if nodes.iter().any(|id| state.nodes.all().iter().all(|node| node.id != *id)) {
            return invalid("an unknown broker is assigned");
        }
    }
    let partitions = i32::try_from(assigned.len()).unwrap_or(i32::MAX);
    Ok((partitions, i16::try_from(replicas).unwrap_or(i16::MAX)))
}

/// All settings of a new topic with their values.
fn shown(configs: &TopicConfigs) -> Vec<CreatableTopicConfigs> {
    TOPIC_CONFIGS
        .iter()
        .map(|def| {
            let source = config::source(configs, def);
            CreatableTopicConfigs::default()
                .with_name(text(def.name))
                .with_value(Some(text(value(configs, def))))
                .with_config_source(source)
        })
        .collect()
}

/// The names that are there more than once.
fn twice<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).map(str::to_owned).collect()
}

impl Serve for DeleteTopicsRequest {
    type Answer = DeleteTopicsResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> DeleteTopicsResponse {
        let by_name = self.topic_names.iter().map(|name| (Some(name.clone()), Uuid::nil()));
        let by_either = self.topics.iter().map(|topic| (topic.name.clone(), topic.topic_id));
        let responses = by_name.chain(by_either).map(|(name, id)| {
            DeletableTopicResult::default()
                .with_name(name)
                .with_topic_id(id)
                .with_error_code(error.code())
                .with_error_message(Some(text(error.to_string())))
        });
        DeleteTopicsResponse::default().with_responses(responses.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<DeleteTopicsResponse> {
        let by_name = self.topic_names.iter().map(|name| (Some(name.to_string()), Uuid::nil()));
        let by_either = self
            .topics
            .iter()
            .map(|topic| (topic.name.as_ref().map(|name| name.to_string()), topic.topic_id));
        let wanted: Vec<(Option<String>, Uuid)> = by_name.chain(by_either).collect();
        let named = |name: &Option<String>, id: &Uuid| (name.clone(), *id);
        let mut twice = BTreeSet::new();
        let wanted = once(
            wanted,
            |(name, id)| named(name, id),
            |first, _| {
                twice.insert(first.clone());
            },
        );
        let responses = context.with(|state| {
            let responses = wanted.iter().map(|(name, id)| {
                if twice.contains(&named(name, id)) {
                    return DeletableTopicResult::default()
                        .with_name(name.as_deref().map(topic_name))
                        .with_topic_id(*id)
                        .with_error_code(ErrorCode::INVALID_REQUEST.code())
                        .with_error_message(Some(text("Duplicate topic name.")));
                }
                delete(state, name.as_deref(), *id)
            });
            responses.collect::<Vec<_>>()
        });
        Outcome::Answer(DeleteTopicsResponse::default().with_responses(responses))
    }
}

fn delete(state: &mut State, name: Option<&str>, id: Uuid) -> DeletableTopicResult {
    let found = match name {
        Some(name) => Some(name.to_owned()),
        None => state.topics.name_of(id).map(str::to_owned),
    };
    let Some(name) = found else {
        return DeletableTopicResult::default()
            .with_name(None)
            .with_topic_id(id)
            .with_error_code(ErrorCode::UNKNOWN_TOPIC_ID.code())
            .with_error_message(Some(text("This server does not host this topic ID.")));
    };
    let id = state.topics.get(&name).map_or(id, |topic| topic.id);
    let result = DeletableTopicResult::default().with_name(Some(topic_name(&name))).with_topic_id(id);
    match state.topics.delete(&name, &mut state.storage) {
        Ok(()) => {
            let mut effects = Effects::new();
            state.coordinators.groups.drop_topic(&name, &mut effects);
            state.settle(effects);
            result
        }
        Err(refusal) => {
            result.with_error_code(refusal.code.code()).with_error_message(Some(text(refusal.message)))
        }
    }
}

impl Serve for CreatePartitionsRequest {
    type Answer = CreatePartitionsResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> CreatePartitionsResponse {
        let results = self.topics.iter().map(|topic| {
            CreatePartitionsTopicResult::default()
                .with_name(topic.name.clone())
                .with_error_code(error.code())
                .with_error_message(Some(text(error.to_string())))
        });
        CreatePartitionsResponse::default().with_results(results.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<CreatePartitionsResponse> {
        let twice = twice(self.topics.iter().map(|topic| topic.name.as_str()));
        let results = context.with(|state| {
            let results = once(&self.topics, |topic| &topic.name, |_, _| {}).into_iter().map(|topic| {
                let grown = if twice.contains(topic.name.as_str()) {
                    Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."))
                } else {
                    grow(state, topic, self.validate_only)
                };
                let result = CreatePartitionsTopicResult::default().with_name(topic.name.clone());
                match grown {
                    Ok(()) => result,
                    Err(refusal) => result
                        .with_error_code(refusal.code.code())
                        .with_error_message(Some(text(refusal.message))),
                }
            });
            results.collect::<Vec<_>>()
        });
        Outcome::Answer(CreatePartitionsResponse::default().with_results(results))
    }
}

fn grow(state: &mut State, topic: &CreatePartitionsTopic, validate_only: bool) -> Result<(), Refusal> {
    state.topics.check_grow(&topic.name, topic.count)?;
    if let Some(assigned) = &topic.assignments {
        let current = state.topics.get(&topic.name).map_or(0, |topic| topic.partition_count());
        let wanted = topic.count.saturating_sub(current);
        if i32::try_from(assigned.len()) != Ok(wanted) {
            let why = format!("{wanted} new partitions, but {} assignments", assigned.len());
            return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, why));
        }
        let assigned = (0..)
            .zip(assigned)
            .map(|(index, assignment)| (index, assignment.broker_ids.iter().map(|id| id.0).collect()));
        assigned_shape(state, assigned.collect())?;
    }
    if !validate_only {
        state.topics.grow(&topic.name, topic.count, &state.nodes, &mut state.storage)?;
    }
    Ok(())
}
