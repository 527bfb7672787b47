//! DescribeConfigs, AlterConfigs and IncrementalAlterConfigs.

use std::collections::HashSet;

use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_response as incremental;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};

use super::repeated::once;
use super::text::text;
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::broker::Refusal;
use crate::broker::config::{self, ConfigDef, ConfigKind, TOPIC_CONFIGS, TopicConfigs};
use crate::broker::state::State;
use crate::broker::topics;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
/// A setting the broker was started with.
const SOURCE_STATIC: i8 = 4;

impl Serve for DescribeConfigsRequest {
    type Answer = DescribeConfigsResponse;
    const ASKS_FOR_MUCH: bool = true;

    fn refuse(&self, _version: i16, error: ErrorCode) -> DescribeConfigsResponse {
        let results = self.resources.iter().map(|resource| {
            DescribeConfigsResult::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
                .with_error_code(error.code())
                .with_error_message(Some(text(error.to_string())))
        });
        DescribeConfigsResponse::default().with_results(results.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<DescribeConfigsResponse> {
        let unknown = |resource: &DescribeConfigsResource| ![TOPIC, BROKER].contains(&resource.resource_type);
        if self.resources.iter().any(unknown) {
            return Outcome::Answer(self.refuse(context.version(), ErrorCode::INVALID_REQUEST));
        }
        let key =
            |resource: &&DescribeConfigsResource| (resource.resource_type, resource.resource_name.clone());
        let resources = once(&self.resources, key, |_, _| {});
        let results = context.with(|state| {
            let results = resources.into_iter().map(|resource| {
                let result = DescribeConfigsResult::default()
                    .with_resource_type(resource.resource_type)
                    .with_resource_name(resource.resource_name.clone());
                match describe(state, context.node, resource, self.include_synonyms) {
                    Ok(configs) => result.with_configs(configs),
                    Err(refusal) => result
                        .with_error_code(refusal.code.code())
                        .with_error_message(Some(text(refusal.message))),
                }
            });
            results.collect::<Vec<_>>()
        });
        Outcome::Answer(DescribeConfigsResponse::default().with_results(results))
    }
}

fn describe(
    state: &State,
    node: i32,
    resource: &DescribeConfigsResource,
    synonyms: bool,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    // No names at all ask for everything, too.
    let keys = resource.configuration_keys.as_ref().filter(|keys| !keys.is_empty());
    let keys: Option<HashSet<&str>> = keys.map(|keys| keys.iter().map(|key| key.as_str()).collect());
    let wanted = |name: &str| keys.as_ref().is_none_or(|keys| keys.contains(name));
    match resource.resource_type {
        TOPIC => {
            let topic = topic(state, &resource.resource_name)?;
            Ok(TOPIC_CONFIGS
                .iter()
                .filter(|def| wanted(def.name))
                .map(|def| topic_config(&topic, def, synonyms))
                .collect())
        }
        BROKER => {
            let name = resource.resource_name.as_str();
            if !name.is_empty() && name != node.to_string() {
                let why =
                    format!("Unexpected broker id, expected {node} or empty string, but received {name}");
                return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
            }
            // The empty name asks for what was set for all brokers while they ran: nothing can be.
            let all = if name.is_empty() { Vec::new() } else { broker_configs(state, node) };
            Ok(all.into_iter().filter(|config| wanted(&config.name)).collect())
        }
        other => Err(unsupported(other)),
    }
}

fn topic_config(configs: &TopicConfigs, def: &ConfigDef, synonyms: bool) -> DescribeConfigsResourceResult {
    let own = configs.contains_key(def.name);
    let value = Some(text(config::value(configs, def)));
    let source = config::source(configs, def);
    let mut result = DescribeConfigsResourceResult::default()
        .with_name(text(def.name))
        .with_value(value.clone())
        .with_config_source(source)
        .with_config_type(def.kind.wire())
        .with_documentation(None);
    if synonyms && own {
        let synonym =
            DescribeConfigsSynonym::default().with_name(text(def.name)).with_value(value).with_source(source);
        result.synonyms.push(synonym);
    }
    result
}

/// What the broker was started with, under Kafka's names.
fn broker_configs(state: &State, node: i32) -> Vec<DescribeConfigsResourceResult> {
    let settings = &state.settings;
    let (int, long, bool) = (ConfigKind::Int { min: 0 }, ConfigKind::Long { min: 0 }, ConfigKind::Bool);
    let all = [
        ("auto.create.topics.enable", settings.auto_create_topics.to_string(), bool),
        ("default.replication.factor", "1".to_owned(), int),
        ("group.initial.rebalance.delay.ms", settings.groups.initial_rebalance_delay.0.to_string(), int),
        ("group.max.session.timeout.ms", settings.groups.max_session_timeout.0.to_string(), int),
        ("group.min.session.timeout.ms", settings.groups.min_session_timeout.0.to_string(), int),
        ("log.cleanup.policy", "delete".to_owned(), ConfigKind::List(&[])),
        ("message.max.bytes", "1048588".to_owned(), int),
        ("node.id", node.to_string(), int),
        ("num.partitions", "1".to_owned(), int),
        ("offset.metadata.max.bytes", settings.groups.max_offset_metadata.to_string(), int),
        ("socket.request.max.bytes", settings.max_frame.to_string(), int),
        ("transaction.max.timeout.ms", settings.transactions.max_timeout.0.to_string(), long),
    ];
    all.into_iter()
        .map(|(name, value, kind)| {
            DescribeConfigsResourceResult::default()
                .with_name(text(name))
                .with_value(Some(text(value)))
                .with_read_only(true)
                .with_config_source(SOURCE_STATIC)
                .with_config_type(kind.wire())
        })
        .collect()
}

fn topic(state: &State, name: &str) -> Result<TopicConfigs, Refusal> {
    match state.topics.get(name) {
        Some(topic) => Ok(topic.configs.clone()),
        None => {
            topics::check_name(name)?;
            Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic."))
        }
    }
}

fn unsupported(resource_type: i8) -> Refusal {
    let why = format!("settings of resource type {resource_type} are not supported");
    Refusal::new(ErrorCode::INVALID_REQUEST, why)
}

/// What a change of settings consists of: name, operation and value of each.
type Changes<'a> = Vec<(&'a str, i8, Option<&'a str>)>;

/// Refuses what is wrong with a change whatever its topic has.
fn check_changes(changes: &Changes<'_>) -> Result<(), Refusal> {
    changes.iter().try_for_each(|(name, operation, value)| config::check_change(name, *operation, *value))
}

/// The resources that are there more than once, none of which may be changed.
fn twice<'a>(resources: impl Iterator<Item = (i8, &'a str)>) -> HashSet<(i8, &'a str)> {
    let mut seen = HashSet::new();
    resources.filter(|resource| !seen.insert(*resource)).collect()
}

/// Refuses what is wrong with a request to change a resource before any of its changes is looked at.
fn check_request(
    twice: &HashSet<(i8, &str)>,
    resource: (i8, &str),
    changes: &Changes<'_>,
) -> Result<(), Refusal> {
    if twice.contains(&resource) {
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Each resource must appear at most once."));
    }
    let mut names = HashSet::new();
    if !changes.iter().all(|(name, ..)| names.insert(*name)) {
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Error due to duplicate config keys"));
    }
    if resource.0 == TOPIC { Ok(()) } else { Err(unsupported(resource.0)) }
}

/// Changes a topic's settings as a whole, or only says whether it could.
fn change(
    state: &mut State,
    name: &str,
    validate_only: bool,
    anew: bool,
    changes: &Changes<'_>,
) -> Result<(), Refusal> {
    check_changes(changes)?;
    if name.is_empty() {
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Default topic resources are not allowed."));
    }
    let mut configs = match topic(state, name) {
        Ok(configs) => configs,
        // As in Kafka, the values are looked at before there has to be a topic.
        Err(missing) => {
            let mut none = TopicConfigs::new();
            let checked = changes
                .iter()
                .try_for_each(|(name, operation, value)| config::alter(&mut none, name, *operation, *value));
            return Err(checked
                .err()
                .filter(|_| missing.code != ErrorCode::INVALID_TOPIC_EXCEPTION)
                .unwrap_or(missing));
        }
    };
    if anew {
        configs.clear();
    }
    changes
        .iter()
        .try_for_each(|(name, operation, value)| config::alter(&mut configs, name, *operation, *value))?;
    if validate_only { Ok(()) } else { state.topics.set_configs(name, configs, &mut state.storage) }
}

impl Serve for AlterConfigsRequest {
    type Answer = AlterConfigsResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> AlterConfigsResponse {
        let responses = self.resources.iter().map(|resource| {
            AlterConfigsResourceResponse::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
                .with_error_code(error.code())
                .with_error_message(Some(text(error.to_string())))
        });
        AlterConfigsResponse::default().with_responses(responses.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<AlterConfigsResponse> {
        let resources = self.resources.iter();
        let twice = twice(resources.map(|one| (one.resource_type, one.resource_name.as_str())));
        let responses = context.with(|state| {
            let responses = self.resources.iter().map(|resource| {
                let name = resource.resource_name.as_str();
                let changes = resource.configs.iter().map(|entry| {
                    (entry.name.as_str(), config::SET, entry.value.as_ref().map(|value| value.as_str()))
                });
                let changes = changes.collect();
                let checked = check_request(&twice, (resource.resource_type, name), &changes);
                let changed = checked.and_then(|()| change(state, name, self.validate_only, true, &changes));
                let response = AlterConfigsResourceResponse::default()
                    .with_resource_type(resource.resource_type)
                    .with_resource_name(resource.resource_name.clone());
                match changed {
                    Ok(()) => response,
                    Err(refusal) => response
                        .with_error_code(refusal.code.code())
                        .with_error_message(Some(text(refusal.message))),
                }
            });
            responses.collect::<Vec<_>>()
        });
        Outcome::Answer(AlterConfigsResponse::default().with_responses(responses))
    }
}

impl Serve for IncrementalAlterConfigsRequest {
    type Answer = IncrementalAlterConfigsResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> IncrementalAlterConfigsResponse {
        let responses = self.resources.iter().map(|resource| {
            incremental::AlterConfigsResourceResponse::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
                .with_error_code(error.code())
                .with_error_message(Some(text(error.to_string())))
        });
        IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<IncrementalAlterConfigsResponse> {
        let resources = self.resources.iter();
        let twice = twice(resources.map(|one| (one.resource_type, one.resource_name.as_str())));
        // As in Kafka, where it spoils all that the controller is asked for.
        let beyond_reading = self.resources.iter().any(|resource| {
            let changes = changes_of(resource);
            let unknown = |(_, operation, value): &(&str, i8, Option<&str>)| {
                !config::OPERATIONS.contains(operation) && value.is_some()
            };
            let resource = (resource.resource_type, resource.resource_name.as_str());
            check_request(&twice, resource, &changes).is_ok() && changes.iter().any(unknown)
        });
        let responses = context.with(|state| {
            let responses = self.resources.iter().map(|resource| {
                let name = resource.resource_name.as_str();
                let changes = changes_of(resource);
                let checked = check_request(&twice, (resource.resource_type, name), &changes);
                let changed = checked.and_then(|()| {
                    if beyond_reading {
                        let why = "an operation is unknown";
                        return Err(Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, why));
                    }
                    change(state, name, self.validate_only, false, &changes)
                });
                let response = incremental::AlterConfigsResourceResponse::default()
                    .with_resource_type(resource.resource_type)
                    .with_resource_name(resource.resource_name.clone());
                match changed {
                    Ok(()) => response,
                    Err(refusal) => response
                        .with_error_code(refusal.code.code())
                        .with_error_message(Some(text(refusal.message))),
                }
            });
            responses.collect::<Vec<_>>()
        });
        Outcome::Answer(IncrementalAlterConfigsResponse::default().with_responses(responses))
    }
}

fn changes_of(resource: &AlterConfigsResource) -> Changes<'_> {
    let changes = resource.configs.iter().map(|entry| {
        (entry.name.as_str(), entry.config_operation, entry.value.as_ref().map(|value| value.as_str()))
    });
    changes.collect()
}
