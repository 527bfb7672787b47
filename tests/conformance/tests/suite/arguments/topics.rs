//! Topics and their settings, and what the cluster says of them.

use kafka_protocol::messages::alter_configs_request as alter;
use kafka_protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::incremental_alter_configs_request as incremental;
use kafka_protocol::messages::*;

use flechtwerk_conformance::text;

use super::ranges::{flat, metadata_topic, odd_name, one, some, topic};
use super::{Question, World, question};
use crate::dice::Dice;

const CONFIGS: &[(&str, &str)] = &[
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "delete,delete"),
    ("cleanup.policy", ""),
    ("cleanup.policy", "none"),
    ("retention.ms", "-1"),
    ("retention.ms", "-2"),
    ("retention.ms", "soon"),
    ("retention.ms", "9223372036854775808"),
    ("retention.ms", " 5 "),
    ("max.message.bytes", "0"),
    ("max.message.bytes", "-1"),
    ("max.message.bytes", "2147483648"),
    ("min.cleanable.dirty.ratio", "0.1"),
    ("min.cleanable.dirty.ratio", "1.1"),
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "logappendtime"),
    ("compression.type", "zstd"),
    ("compression.type", "brotli"),
    ("preallocate", "TRUE"),
    ("preallocate", "yes"),
    ("segment.bytes", "13"),
    ("segment.bytes", "1048576"),
    ("compression.gzip.level", "0"),
    ("compression.gzip.level", "10"),
    ("compression.lz4.level", "18"),
    ("compression.zstd.level", "23"),
    ("flush.ms", "-1"),
    ("min.compaction.lag.ms", "100"),
    ("max.compaction.lag.ms", "10"),
    ("leader.replication.throttled.replicas", "*"),
    ("leader.replication.throttled.replicas", "0:1,1:1"),
    ("leader.replication.throttled.replicas", "none of it"),
    ("no.such.setting", "1"),
    ("", ""),
];

pub(super) fn any(dice: &mut Dice, world: &World) -> Question {
    match dice.roll(16) {
        0..=3 => create(dice, world),
        4..=5 => create_partitions(dice, world),
        6 => delete(dice, world),
        7..=8 => describe_configs(dice, world),
        9 => alter_configs(dice, world),
        10..=12 => incremental_alter_configs(dice, world),
        13 => metadata(dice, world),
        14 => topic_partitions(dice, world),
        _ => cluster(dice),
    }
}

fn config(dice: &mut Dice) -> (String, Option<String>) {
    let (name, value) = one(dice, CONFIGS);
    (name.to_owned(), (dice.roll(10) != 0).then(|| value.to_owned()))
}

fn create(dice: &mut Dice, world: &World) -> Question {
    let topics = some(dice, |dice| {
        let name = match dice.roll(8) {
            0 => topic(dice, world),
            1 => odd_name(dice),
            // The same but for what metrics can't tell apart.
            2 => world.others[0].replace('.', "_"),
            _ => world.others[dice.roll(world.others.len())].clone(),
        };
        let configs = if dice.roll(2) == 0 { some(dice, config) } else { Vec::new() };
        let configs = configs.into_iter().map(|(name, value)| {
            CreatableTopicConfig::default().with_name(text(&name)).with_value(value.map(|value| text(&value)))
        });
        let mut topic = CreatableTopic::default()
            .with_name(text(&name).into())
            .with_num_partitions(one(dice, &[1, 1, 2, 3, -1, 0, -2, 10_001, i32::MAX, i32::MIN]))
            .with_replication_factor(one(dice, &[1, 1, 1, 1, -1, 0, 2, -2, i16::MAX]))
            .with_configs(configs.collect());
        if dice.roll(5) == 0 {
            topic.assignments = some(dice, |dice| {
                CreatableReplicaAssignment::default()
                    .with_partition_index(one(dice, &[0, 0, 1, -1, 7]))
                    .with_broker_ids(some(dice, |dice| BrokerId(one(dice, &[1, 1, 1, 2, -1]))))
            });
            if dice.roll(4) != 0 {
                (topic.num_partitions, topic.replication_factor) = (-1, -1);
            }
        }
        topic
    });
    let (version, validate) = (2 + dice.roll(6) as i16, dice.roll(4) == 0);
    question((version, false), move |_| {
        CreateTopicsRequest::default()
            .with_topics(topics.clone())
            .with_timeout_ms(20_000)
            .with_validate_only(validate)
    })
}

fn create_partitions(dice: &mut Dice, world: &World) -> Question {
    let topics = some(dice, |dice| {
        let mut wanted = CreatePartitionsTopic::default()
            .with_name(text(&topic(dice, world)).into())
            .with_count(one(dice, &[1, 2, 3, 4, 0, -1, i32::MIN]));
        if dice.roll(4) == 0 {
            wanted.assignments = Some(some(dice, |dice| {
                CreatePartitionsAssignment::default()
                    .with_broker_ids(some(dice, |dice| BrokerId(one(dice, &[1, 1, 1, 2]))))
            }));
        }
        wanted
    });
    let (version, validate) = (dice.roll(4) as i16, dice.roll(3) == 0);
    question((version, false), move |_| {
        CreatePartitionsRequest::default()
            .with_topics(topics.clone())
            .with_timeout_ms(20_000)
            .with_validate_only(validate)
    })
}

fn delete(dice: &mut Dice, world: &World) -> Question {
    let names = some(dice, |dice| match dice.roll(4) {
        0 => odd_name(dice),
        _ => world.others[dice.roll(world.others.len())].clone(),
    });
    let version = 1 + dice.roll(6) as i16;
    question((version, false), move |_| {
        let request = DeleteTopicsRequest::default().with_timeout_ms(20_000);
        if version < 6 {
            return request.with_topic_names(names.iter().map(|name| text(name).into()).collect());
        }
        let named = |name: &String| DeleteTopicState::default().with_name(Some(text(name).into()));
        request.with_topics(names.iter().map(named).collect())
    })
}

fn describe_configs(dice: &mut Dice, world: &World) -> Question {
    // One that is there twice is answered once by the development broker.
    let resources = flat(dice, |dice| {
        let kind = one(dice, &[2, 2, 2, 2, 2, 2, 0, 3, 99, -1]);
        (kind, topic(dice, world))
    });
    let keys: Vec<String> = (0..1 + dice.roll(3)).map(|_| config(dice).0).collect();
    let version = 1 + dice.roll(4) as i16;
    question((version, true), move |_| {
        let resources = resources.iter().map(|(kind, name)| {
            DescribeConfigsResource::default()
                .with_resource_type(*kind)
                .with_resource_name(text(name))
                .with_configuration_keys(Some(keys.iter().map(|key| text(key)).collect()))
        });
        DescribeConfigsRequest::default().with_resources(resources.collect())
    })
}

fn distinct_resources(
    dice: &mut Dice,
    make: impl FnMut(&mut Dice) -> alter::AlterConfigsResource,
) -> Vec<alter::AlterConfigsResource> {
    let mut names = std::collections::BTreeSet::new();
    let mut all = some(dice, make);
    all.retain(|one| names.insert((one.resource_type, one.resource_name.clone())));
    all
}

fn alter_configs(dice: &mut Dice, world: &World) -> Question {
    // One that is there twice is never answered by a real Kafka.
    let resources = distinct_resources(dice, |dice| {
        let configs = some(dice, config).into_iter().map(|(name, value)| {
            alter::AlterableConfig::default().with_name(text(&name)).with_value(value.map(|one| text(&one)))
        });
        alter::AlterConfigsResource::default()
            .with_resource_type(one(dice, &[2, 2, 2, 2, 2, 0, 3, 99]))
            .with_resource_name(text(&topic(dice, world)))
            .with_configs(configs.collect())
    });
    let (version, validate) = (dice.roll(3) as i16, dice.roll(3) == 0);
    question((version, false), move |_| {
        AlterConfigsRequest::default().with_resources(resources.clone()).with_validate_only(validate)
    })
}

fn incremental_alter_configs(dice: &mut Dice, world: &World) -> Question {
    let resources = some(dice, |dice| {
        let configs = some(dice, |dice| {
            let (name, value) = config(dice);
            incremental::AlterableConfig::default()
                .with_name(text(&name))
                .with_config_operation(one(dice, &[0, 0, 0, 1, 2, 2, 3, 3]))
                .with_value(value.map(|one| text(&one)))
        });
        incremental::AlterConfigsResource::default()
            .with_resource_type(one(dice, &[2, 2, 2, 2, 2, 2, 0, 3, 99]))
            .with_resource_name(text(&topic(dice, world)))
            .with_configs(configs)
    });
    let (version, validate) = (dice.roll(2) as i16, dice.roll(3) == 0);
    question((version, false), move |_| {
        IncrementalAlterConfigsRequest::default()
            .with_resources(resources.clone())
            .with_validate_only(validate)
    })
}

fn metadata(dice: &mut Dice, world: &World) -> Question {
    let version = one(dice, &[1, 4, 5, 7, 8, 9, 10, 11, 12]);
    let topics = some(dice, |dice| {
        if version >= 12 && dice.roll(6) == 0 {
            return metadata_topic(None).with_topic_id(uuid::Uuid::from_u128(7));
        }
        metadata_topic(Some(&topic(dice, world)))
    });
    question((version, true), move |_| {
        MetadataRequest::default().with_topics(Some(topics.clone())).with_allow_auto_topic_creation(true)
    })
}

fn topic_partitions(dice: &mut Dice, world: &World) -> Question {
    // None would ask for those of other checks, too.
    let topics: Vec<String> = (0..1 + dice.roll(3)).map(|_| topic(dice, world)).collect();
    let limit = one(dice, &[2_000, 2_000, 1, 2, 3]);
    let cursor = (dice.roll(3) == 0).then(|| (topic(dice, world), one(dice, &[0, 1, 2, 5])));
    question((0, true), move |_| {
        let topics = topics.iter().map(|name| TopicRequest::default().with_name(text(name).into()));
        let cursor = cursor.as_ref().map(|(name, partition)| {
            Cursor::default().with_topic_name(text(name).into()).with_partition_index(*partition)
        });
        DescribeTopicPartitionsRequest::default()
            .with_topics(topics.collect())
            .with_response_partition_limit(limit)
            .with_cursor(cursor)
    })
}

fn cluster(dice: &mut Dice) -> Question {
    let (version, kind) = (dice.roll(2) as i16, one(dice, &[1, 1, 2, 3, -1]));
    question((version, true), move |_| {
        DescribeClusterRequest::default().with_endpoint_type(if version == 0 { 1 } else { kind })
    })
}
