//! DescribeConfigs, AlterConfigs and IncrementalAlterConfigs.

use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::incremental_alter_configs_response as incremental;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};

use super::text::text;
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::broker::Refusal;
use crate::broker::config::{self, ConfigDef, ConfigKind, TOPIC_CONFIGS, TopicConfigs};
use crate::broker::state::State;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
/// Where a value comes from: the topic's own settings, or the defaults.
const SOURCE_TOPIC: i8 = 1;
const SOURCE_DEFAULT: i8 = 5;
/// A setting the broker was started with.
const SOURCE_STATIC: i8 = 4;

impl Serve for DescribeConfigsRequest {
    type Answer = DescribeConfigsResponse;

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
        let results = context.with(|state| {
            let results = self.resources.iter().map(|resource| {
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
    let wanted = |name: &str| match &resource.configuration_keys {
        None => true,
        Some(keys) => keys.iter().any(|key| key.as_str() == name),
    };
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
    let source = if own { SOURCE_TOPIC } else { SOURCE_DEFAULT };
    let mut result = DescribeConfigsResourceResult::default()
        .with_name(text(def.name))
        .with_value(value.clone())
        .with_config_source(source)
        .with_config_type(def.kind.wire());
    if synonyms && own {
        let synonym = DescribeConfigsSynonym::default()
            .with_name(text(def.name))
            .with_value(value)
            .with_source(SOURCE_TOPIC);
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
        ("log.cleanup.policy", "delete".to_owned(), ConfigKind::Text),
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
            Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic."))
        }
    }
}

fn unsupported(resource_type: i8) -> Refusal {
    let why = format!("settings of resource type {resource_type} are not supported");
    Refusal::new(ErrorCode::INVALID_REQUEST, why)
}

/// Changes a topic's settings as a whole, or only says whether it could.
fn change(
    state: &mut State,
    resource_type: i8,
    name: &str,
    validate_only: bool,
    change: impl FnOnce(&mut TopicConfigs) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    if resource_type != TOPIC {
        return Err(unsupported(resource_type));
    }
    let mut configs = topic(state, name)?;
    change(&mut configs)?;
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
        let responses = context.with(|state| {
            let responses = self.resources.iter().map(|resource| {
                let name = resource.resource_name.as_str();
                let changed = change(state, resource.resource_type, name, self.validate_only, |configs| {
                    configs.clear();
                    resource.configs.iter().try_for_each(|entry| {
                        config::alter(
                            configs,
                            &entry.name,
                            0,
                            entry.value.as_ref().map(|value| value.as_str()),
                        )
                    })
                });
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
        let responses = context.with(|state| {
            let responses = self.resources.iter().map(|resource| {
                let name = resource.resource_name.as_str();
                let changed = change(state, resource.resource_type, name, self.validate_only, |configs| {
                    resource.configs.iter().try_for_each(|entry| {
                        let value = entry.value.as_ref().map(|value| value.as_str());
                        config::alter(configs, &entry.name, entry.config_operation, value)
                    })
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
