//! Settings of topics and brokers: describe and alter, as a whole and one by one.

use flechtwerk_conformance::calls::topics::{BROKER, TOPIC};
use flechtwerk_conformance::*;
use kafka_protocol::messages::{
    AlterConfigsRequest, IncrementalAlterConfigsRequest, MetadataRequest, alter_configs_request as whole,
    incremental_alter_configs_request as single,
};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn alter(
    client: &mut Client,
    topic: &str,
    changes: &[(&str, i8, Option<&str>)],
    validate_only: bool,
) -> Answer {
    let one = |(key, operation, value): &(&str, i8, Option<&str>)| {
        single::AlterableConfig::default()
            .with_name(text(key))
            .with_config_operation(*operation)
            .with_value(value.map(text))
    };
    let resource = single::AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(text(topic))
        .with_configs(changes.iter().map(one).collect());
    let request = IncrementalAlterConfigsRequest::default()
        .with_resources(vec![resource])
        .with_validate_only(validate_only);
    code(client.call(&request).responses[0].error_code)
}

fn replace(client: &mut Client, topic: &str, settings: &[(&str, &str)]) -> Answer {
    let one = |(key, value): &(&str, &str)| {
        whole::AlterableConfig::default().with_name(text(key)).with_value(Some(text(value)))
    };
    let resource = whole::AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(text(topic))
        .with_configs(settings.iter().map(one).collect());
    code(client.call(&AlterConfigsRequest::default().with_resources(vec![resource])).responses[0].error_code)
}

#[track_caller]
fn await_config(client: &mut Client, topic: &str, key: &str, value: &str) {
    wait_for(&format!("{key} is {value}"), || client.config(topic, key).as_deref() == Some(value));
}

#[test]
fn the_cleanup_policy_comes_back() {
    let mut client = Broker::get().client();
    for policy in ["delete", "compact", "compact,delete"] {
        let topic = client.topic_with(1, &[("cleanup.policy", policy)]);
        assert_eq!(client.config(&topic, "cleanup.policy").as_deref(), Some(policy));
    }
}

#[test]
fn a_setting_that_nobody_made_has_its_default_and_says_so() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, &[("cleanup.policy", "compact")]);
    let result = client.configs(TOPIC, &topic, None);
    assert_eq!(code(result.error_code), Ok(()));
    let source = |key: &str| {
        let config = result.configs.iter().find(|config| config.name.as_str() == key).unwrap_or_else(|| {
            panic!("{key} is missing");
        });
        (config.config_source, config.value.as_ref().map(|value| value.as_str().to_owned()))
    };
    // 1: the topic's own; 5: the default.
    assert_eq!(source("cleanup.policy"), (1, Some("compact".to_owned())));
    assert_eq!(source("retention.ms"), (5, Some("604800000".to_owned())));
    assert_eq!(source("max.message.bytes"), (5, Some("1048588".to_owned())));
    assert_eq!(source("min.insync.replicas").1.as_deref(), Some("1"));
    assert_eq!(source("message.timestamp.type"), (5, Some("CreateTime".to_owned())));
    assert_eq!(source("compression.type"), (5, Some("producer".to_owned())));
}

#[test]
fn described_are_the_named_settings_alone() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let result = client.configs(TOPIC, &topic, Some(&["retention.ms", "no.such.setting"]));
    let names: Vec<&str> = result.configs.iter().map(|config| config.name.as_str()).collect();
    assert_eq!(names, ["retention.ms"]);
}

#[test]
fn the_settings_of_an_unknown_topic_are_refused() {
    let mut client = Broker::get().client();
    let name = unique("nowhere");
    assert_eq!(code(client.configs(TOPIC, &name, None).error_code), Err(Code::UnknownTopicOrPartition));
    assert_eq!(
        alter(&mut client, &name, &[("retention.ms", SET, Some("1"))], false),
        Err(Code::UnknownTopicOrPartition)
    );
    assert_eq!(replace(&mut client, &name, &[("retention.ms", "1")]), Err(Code::UnknownTopicOrPartition));
}

#[test]
fn the_settings_of_a_broker_can_be_described() {
    let mut client = Broker::get().client();
    let node = client.call(&MetadataRequest::default().with_topics(Some(Vec::new()))).brokers[0].node_id;
    let result = client.configs(BROKER, &node.0.to_string(), None);
    assert_eq!(code(result.error_code), Ok(()));
    let limit = result.configs.iter().find(|config| config.name.as_str() == "transaction.max.timeout.ms");
    assert_eq!(limit.and_then(|config| config.value.as_ref()).map(|value| value.as_str()), Some("900000"));
}

#[test]
fn a_setting_is_set_and_the_others_stay() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, &[("cleanup.policy", "compact")]);
    assert_eq!(alter(&mut client, &topic, &[("retention.ms", SET, Some("1234"))], false), Ok(()));
    await_config(&mut client, &topic, "retention.ms", "1234");
    assert_eq!(client.config(&topic, "cleanup.policy").as_deref(), Some("compact"));
}

#[test]
fn a_setting_that_is_deleted_has_its_default_again() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, &[("retention.ms", "1234")]);
    assert_eq!(alter(&mut client, &topic, &[("retention.ms", DELETE, None)], false), Ok(()));
    await_config(&mut client, &topic, "retention.ms", "604800000");
}

#[test]
fn a_list_setting_grows_and_shrinks() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, &[("cleanup.policy", "delete")]);
    assert_eq!(alter(&mut client, &topic, &[("cleanup.policy", APPEND, Some("compact"))], false), Ok(()));
    await_config(&mut client, &topic, "cleanup.policy", "delete,compact");
    assert_eq!(alter(&mut client, &topic, &[("cleanup.policy", SUBTRACT, Some("delete"))], false), Ok(()));
    await_config(&mut client, &topic, "cleanup.policy", "compact");
}

#[test]
fn only_a_list_grows() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let answer = alter(&mut client, &topic, &[("retention.ms", APPEND, Some("1"))], false);
    assert_eq!(answer, Err(Code::InvalidConfig));
}

#[test]
fn invalid_changes_are_refused_as_a_whole() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    for (key, value) in [("no.such.setting", "1"), ("retention.ms", "long"), ("cleanup.policy", "burn")] {
        let changes = [("segment.ms", SET, Some("5000")), (key, SET, Some(value))];
        assert_eq!(alter(&mut client, &topic, &changes, false), Err(Code::InvalidConfig), "{key}={value}");
    }
    assert_eq!(client.config(&topic, "segment.ms").as_deref(), Some("604800000"));
}

#[test]
fn a_validated_change_changes_nothing() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    assert_eq!(alter(&mut client, &topic, &[("retention.ms", SET, Some("1234"))], true), Ok(()));
    // A change after it is visible; so the first one would be as well.
    assert_eq!(alter(&mut client, &topic, &[("segment.ms", SET, Some("5000"))], false), Ok(()));
    await_config(&mut client, &topic, "segment.ms", "5000");
    assert_eq!(client.config(&topic, "retention.ms").as_deref(), Some("604800000"));
}

#[test]
fn altered_as_a_whole_a_topic_loses_what_is_not_named() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, &[("cleanup.policy", "compact")]);
    assert_eq!(replace(&mut client, &topic, &[("retention.ms", "1234")]), Ok(()));
    await_config(&mut client, &topic, "retention.ms", "1234");
    assert_eq!(client.config(&topic, "cleanup.policy").as_deref(), Some("delete"));
    assert_eq!(replace(&mut client, &topic, &[("no.such.setting", "1")]), Err(Code::InvalidConfig));
}

#[test]
fn a_changed_limit_of_batches_holds() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let big = Batch::of(["x".repeat(5000)]);
    client.produce(&topic, 0, &big).expect("a batch below the default");
    assert_eq!(alter(&mut client, &topic, &[("max.message.bytes", SET, Some("1000"))], false), Ok(()));
    wait_for("the limit holds", || client.produce(&topic, 0, &big) == Err(Code::MessageTooLarge));
}
