//! Topics: create, look at, delete, configure.

use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResult;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest, MetadataRequest,
};

use crate::{Answer, Client, EARLIEST, UNCOMMITTED, code, text, unique, wait_for};

/// The type of a topic among resources with a configuration.
pub const TOPIC: i8 = 2;
/// The type of a broker among resources with a configuration.
pub const BROKER: i8 = 4;

/// A topic to create, with the broker's default replication.
pub fn new_topic(name: &str, partitions: i32) -> CreatableTopic {
    CreatableTopic::default()
        .with_name(text(name).into())
        .with_num_partitions(partitions)
        .with_replication_factor(1)
}

/// A topic's settings to create it with.
pub fn settings(pairs: &[(&str, &str)]) -> Vec<CreatableTopicConfig> {
    let one = |(name, value): &(&str, &str)| {
        CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
    };
    pairs.iter().map(one).collect()
}

impl Client {
    /// Creates a topic with a name of its own, and waits until its partitions can be used.
    #[track_caller]
    pub fn topic(&mut self, partitions: i32) -> String {
        self.topic_with(partitions, &[])
    }

    /// Creates a topic with settings, and waits until its partitions can be used.
    #[track_caller]
    pub fn topic_with(&mut self, partitions: i32, configs: &[(&str, &str)]) -> String {
        let name = unique("topic");
        let topic = new_topic(&name, partitions).with_configs(settings(configs));
        let answer = self.create(topic);
        assert_eq!(code(answer.error_code), Ok(()), "create {name}: {:?}", answer.error_message);
        self.await_partitions(&name, partitions);
        name
    }

    /// Waits until a topic has that many partitions and each of them answers.
    #[track_caller]
    pub fn await_partitions(&mut self, name: &str, partitions: i32) {
        wait_for("the new topic can be used", || {
            let there = self.describe_topic(name).partitions.len() == partitions as usize;
            there && (0..partitions).all(|one| self.list_offset(name, one, EARLIEST, UNCOMMITTED).is_ok())
        });
    }

    /// Creates one topic.
    #[track_caller]
    pub fn create(&mut self, topic: CreatableTopic) -> CreatableTopicResult {
        let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        let mut answer = self.call(&request);
        assert_eq!(answer.topics.len(), 1, "one answer for one topic");
        answer.topics.remove(0)
    }

    /// Deletes a topic.
    #[track_caller]
    pub fn delete(&mut self, name: &str) -> Answer {
        let topic = DeleteTopicState::default().with_name(Some(text(name).into()));
        let request = DeleteTopicsRequest::default().with_timeout_ms(10_000);
        let version = self.version::<DeleteTopicsRequest>();
        let request = if version >= 6 {
            request.with_topics(vec![topic])
        } else {
            request.with_topic_names(vec![text(name).into()])
        };
        code(self.call(&request).responses[0].error_code)
    }

    /// What the metadata say about a topic.
    #[track_caller]
    pub fn describe_topic(&mut self, name: &str) -> MetadataResponseTopic {
        let topic = MetadataRequestTopic::default().with_name(Some(text(name).into()));
        let request = MetadataRequest::default().with_topics(Some(vec![topic]));
        let mut answer = self.call(&request);
        assert_eq!(answer.topics.len(), 1, "one answer for one topic");
        answer.topics.remove(0)
    }

    /// The settings of a resource, all or the named ones.
    #[track_caller]
    pub fn configs(&mut self, kind: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsResult {
        let keys = keys.map(|keys| keys.iter().map(|key| text(key)).collect());
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configuration_keys(keys);
        let mut answer = self.call(&DescribeConfigsRequest::default().with_resources(vec![resource]));
        assert_eq!(answer.results.len(), 1, "one answer for one resource");
        answer.results.remove(0)
    }

    /// One setting of a topic.
    #[track_caller]
    pub fn config(&mut self, topic: &str, key: &str) -> Option<String> {
        let result = self.configs(TOPIC, topic, Some(&[key]));
        assert_eq!(code(result.error_code), Ok(()), "describe {topic}");
        let config = result.configs.into_iter().find(|config| config.name.as_str() == key)?;
        config.value.map(|value| value.as_str().to_owned())
    }
}
