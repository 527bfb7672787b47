//! Topics: metadata, creation, deletion, more partitions.

use flechtwerk_conformance::calls::topics::{new_topic, settings};
use flechtwerk_conformance::*;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::CreatableReplicaAssignment;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::*;
use uuid::Uuid;

#[test]
fn metadata_without_a_list_name_all_topics() {
    let mut client = Broker::get().client();
    let topics = [client.topic(1), client.topic(2)];
    let answer = client.call(&MetadataRequest::default().with_topics(None));
    for topic in topics {
        let there =
            answer.topics.iter().any(|one| one.name.as_ref().is_some_and(|name| name.as_str() == topic));
        assert!(there, "{topic}");
    }
}

#[test]
fn metadata_with_an_empty_list_name_no_topic() {
    let mut client = Broker::get().client();
    client.topic(1);
    assert!(client.call(&MetadataRequest::default().with_topics(Some(Vec::new()))).topics.is_empty());
}

#[test]
fn metadata_name_a_broker_that_can_be_reached_and_a_controller() {
    let broker = Broker::get();
    let answer = broker.client().call(&MetadataRequest::default().with_topics(Some(Vec::new())));
    let node = answer.brokers.first().expect("a broker");
    assert_eq!((node.host.as_str(), node.port), ("127.0.0.1", i32::from(broker.address().port())));
    assert!(answer.brokers.iter().any(|node| node.node_id == answer.controller_id));
    assert!(answer.cluster_id.is_some_and(|id| !id.is_empty()));
}

#[test]
fn metadata_of_an_unknown_topic_say_so_and_create_nothing() {
    let mut client = Broker::get().client();
    let name = unique("nowhere");
    for _ in 0..2 {
        let topic = client.describe_topic(&name);
        assert_eq!(code(topic.error_code), Err(Code::UnknownTopicOrPartition));
        assert!(topic.partitions.is_empty());
    }
}

#[test]
fn metadata_of_an_invalid_name_say_so() {
    let topic = Broker::get().client().describe_topic("no spaces");
    assert_eq!(code(topic.error_code), Err(Code::InvalidTopicException));
}

#[test]
fn metadata_give_each_topic_an_id_and_find_it_by_that() {
    let mut client = Broker::get().client();
    let (one, other) = (client.topic(1), client.topic(1));
    let (id, other_id) = (client.describe_topic(&one).topic_id, client.describe_topic(&other).topic_id);
    assert!(!id.is_nil());
    assert_ne!(id, other_id);
    if client.version::<MetadataRequest>() < 12 {
        return;
    }
    let by_id = MetadataRequestTopic::default().with_topic_id(id).with_name(None);
    let answer = client.call(&MetadataRequest::default().with_topics(Some(vec![by_id])));
    assert_eq!(answer.topics[0].name.as_ref().map(|name| name.as_str()), Some(one.as_str()));
}

#[test]
fn metadata_of_an_unknown_id_say_so() {
    let mut client = Broker::get().client();
    if client.version::<MetadataRequest>() < 12 {
        return;
    }
    let by_id = MetadataRequestTopic::default().with_topic_id(Uuid::from_u128(77)).with_name(None);
    let answer = client.call(&MetadataRequest::default().with_topics(Some(vec![by_id])));
    assert_eq!(code(answer.topics[0].error_code), Err(Code::UnknownTopicId));
}

#[test]
fn metadata_of_a_partition_name_its_leader_epoch_and_replicas() {
    let mut client = Broker::get().client();
    let topic = client.topic(3);
    let mut topic = client.describe_topic(&topic);
    topic.partitions.sort_by_key(|partition| partition.partition_index);
    let numbers: Vec<i32> = topic.partitions.iter().map(|partition| partition.partition_index).collect();
    assert_eq!(numbers, [0, 1, 2]);
    for partition in topic.partitions {
        assert_eq!(partition.error_code, 0);
        assert!(partition.leader_epoch >= 0);
        assert_eq!(partition.replica_nodes, [partition.leader_id]);
        assert_eq!(partition.isr_nodes, [partition.leader_id]);
    }
}

#[test]
fn a_created_topic_answers_with_its_id_and_partitions() {
    let mut client = Broker::get().client();
    let name = unique("topic");
    let created = client.create(new_topic(&name, 3));
    assert_eq!(code(created.error_code), Ok(()));
    client.await_partitions(&name, 3);
    if client.version::<CreateTopicsRequest>() >= 7 {
        assert_eq!(created.topic_id, client.describe_topic(&name).topic_id);
    }
    if client.version::<CreateTopicsRequest>() >= 5 {
        assert_eq!((created.num_partitions, created.replication_factor), (3, 1));
    }
}

#[test]
fn a_topic_with_default_counts_gets_the_brokers() {
    let mut client = Broker::get().client();
    let name = unique("topic");
    let created = client.create(new_topic(&name, -1).with_replication_factor(-1));
    assert_eq!(code(created.error_code), Ok(()));
    client.await_partitions(&name, 1);
}

#[test]
fn a_topic_can_be_created_once() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    assert_eq!(code(client.create(new_topic(&topic, 1)).error_code), Err(Code::TopicAlreadyExists));
}

#[test]
fn a_topic_named_twice_in_one_request_is_refused() {
    let mut client = Broker::get().client();
    let name = unique("twice");
    let request = CreateTopicsRequest::default()
        .with_topics(vec![new_topic(&name, 1), new_topic(&name, 1)])
        .with_timeout_ms(10_000);
    let answer = client.call(&request);
    assert_eq!(answer.topics.len(), 1);
    assert_eq!(code(answer.topics[0].error_code), Err(Code::InvalidRequest));
    assert_eq!(code(client.describe_topic(&name).error_code), Err(Code::UnknownTopicOrPartition));
}

#[test]
fn invalid_names_are_refused() {
    let mut client = Broker::get().client();
    let long = "x".repeat(250);
    for name in ["", ".", "..", "a b", "a/b", "a:b", "ä", "a\0b", long.as_str()] {
        assert_eq!(
            code(client.create(new_topic(name, 1)).error_code),
            Err(Code::InvalidTopicException),
            "{name:?}"
        );
    }
}

#[test]
fn the_longest_name_and_all_allowed_characters_are_taken() {
    let mut client = Broker::get().client();
    for name in [format!("{:x<249}", unique("long")), unique("A.z_0-9")] {
        assert_eq!(code(client.create(new_topic(&name, 1)).error_code), Ok(()), "{name}");
        client.await_partitions(&name, 1);
    }
}

/// A period and an underscore are the same in the names of metrics.
#[test]
fn a_name_that_differs_in_period_and_underscore_alone_is_refused() {
    let mut client = Broker::get().client();
    let name = unique("a.b");
    assert_eq!(code(client.create(new_topic(&name, 1)).error_code), Ok(()));
    let other = name.replace('.', "_");
    assert_eq!(code(client.create(new_topic(&other, 1)).error_code), Err(Code::InvalidTopicException));
}

#[test]
fn a_number_of_partitions_below_1_is_refused() {
    let mut client = Broker::get().client();
    for partitions in [0, -2] {
        let created = client.create(new_topic(&unique("topic"), partitions));
        assert_eq!(code(created.error_code), Err(Code::InvalidPartitions), "{partitions}");
    }
}

#[test]
fn more_replicas_than_brokers_are_refused() {
    let mut client = Broker::get().client();
    for replicas in [0, 100] {
        let created = client.create(new_topic(&unique("topic"), 1).with_replication_factor(replicas));
        assert_eq!(code(created.error_code), Err(Code::InvalidReplicationFactor), "{replicas}");
    }
}

#[test]
fn partitions_can_be_assigned_by_hand() {
    let mut client = Broker::get().client();
    let node = client.call(&MetadataRequest::default().with_topics(Some(Vec::new()))).brokers[0].node_id;
    let assigned = |partition: i32| {
        CreatableReplicaAssignment::default().with_partition_index(partition).with_broker_ids(vec![node])
    };
    let name = unique("topic");
    let topic =
        new_topic(&name, -1).with_replication_factor(-1).with_assignments(vec![assigned(0), assigned(1)]);
    assert_eq!(code(client.create(topic).error_code), Ok(()));
    client.await_partitions(&name, 2);
    let both = new_topic(&unique("topic"), 2).with_assignments(vec![assigned(0), assigned(1)]);
    assert_eq!(code(client.create(both).error_code), Err(Code::InvalidRequest));
}

#[test]
fn an_unknown_setting_and_an_invalid_value_are_refused() {
    let mut client = Broker::get().client();
    for (key, value) in [("no.such.setting", "1"), ("cleanup.policy", "burn"), ("segment.bytes", "many")] {
        let topic = new_topic(&unique("topic"), 1).with_configs(settings(&[(key, value)]));
        assert_eq!(code(client.create(topic).error_code), Err(Code::InvalidConfig), "{key}={value}");
    }
}

#[test]
fn validate_only_creates_nothing_and_finds_errors() {
    let mut client = Broker::get().client();
    let name = unique("only");
    let request = |topic| {
        CreateTopicsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(10_000)
            .with_validate_only(true)
    };
    assert_eq!(code(client.call(&request(new_topic(&name, 1))).topics[0].error_code), Ok(()));
    assert_eq!(code(client.create(new_topic(&name, 1)).error_code), Ok(()), "it is not there yet");
    let again = client.call(&request(new_topic(&name, 1)));
    assert_eq!(code(again.topics[0].error_code), Err(Code::TopicAlreadyExists));
    let bad = client.call(&request(new_topic("a b", 1)));
    assert_eq!(code(bad.topics[0].error_code), Err(Code::InvalidTopicException));
}

#[test]
fn several_topics_of_one_request_fail_one_by_one() {
    let mut client = Broker::get().client();
    let (good, bad) = (unique("good"), "a b");
    let request = CreateTopicsRequest::default()
        .with_topics(vec![new_topic(bad, 1), new_topic(&good, 1)])
        .with_timeout_ms(10_000);
    let answer = client.call(&request);
    let result =
        |name: &str| answer.topics.iter().find(|topic| topic.name.as_str() == name).expect("an answer");
    assert_eq!(code(result(bad).error_code), Err(Code::InvalidTopicException));
    assert_eq!(code(result(&good).error_code), Ok(()));
}

#[test]
fn a_deleted_topic_is_gone() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    assert_eq!(client.delete(&topic), Ok(()));
    wait_for("the topic is gone", || {
        code(client.describe_topic(&topic).error_code) == Err(Code::UnknownTopicOrPartition)
    });
    wait_for("its partition is gone", || {
        client.list_offset(&topic, 0, LATEST, UNCOMMITTED) == Err(Code::UnknownTopicOrPartition)
    });
    assert_eq!(client.delete(&topic), Err(Code::UnknownTopicOrPartition));
}

#[test]
fn a_topic_that_comes_again_is_empty_and_has_another_id() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    client.produce(&topic, 0, &Batch::of(["old"])).expect("a record");
    let old = client.describe_topic(&topic).topic_id;
    assert_eq!(client.delete(&topic), Ok(()));
    wait_for("the topic is gone", || client.describe_topic(&topic).error_code != 0);
    wait_for("the topic is there again", || client.create(new_topic(&topic, 1)).error_code == 0);
    wait_for("the new topic has another id", || client.describe_topic(&topic).topic_id != old);
    client.await_partitions(&topic, 1);
    assert_eq!(client.end(&topic, 0), 0);
}

#[test]
fn a_topic_can_be_deleted_by_its_id() {
    let mut client = Broker::get().client();
    if client.version::<DeleteTopicsRequest>() < 6 {
        return;
    }
    let topic = client.topic(1);
    let id = client.describe_topic(&topic).topic_id;
    let request = |id| {
        let by_id = DeleteTopicState::default().with_topic_id(id).with_name(None);
        DeleteTopicsRequest::default().with_topics(vec![by_id]).with_timeout_ms(10_000)
    };
    assert_eq!(code(client.call(&request(id)).responses[0].error_code), Ok(()));
    let unknown = client.call(&request(Uuid::from_u128(77)));
    assert_eq!(code(unknown.responses[0].error_code), Err(Code::UnknownTopicId));
}

fn grow(client: &mut Client, topic: &str, count: i32, validate_only: bool) -> Answer {
    let topic = CreatePartitionsTopic::default()
        .with_name(text(topic).into())
        .with_count(count)
        .with_assignments(None);
    let request = CreatePartitionsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(10_000)
        .with_validate_only(validate_only);
    code(client.call(&request).results[0].error_code)
}

#[test]
fn a_topic_gets_more_partitions_and_keeps_its_records() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    client.produce(&topic, 0, &Batch::of(["kept"])).expect("a record");
    assert_eq!(grow(&mut client, &topic, 3, true), Ok(()));
    assert_eq!(client.describe_topic(&topic).partitions.len(), 1, "validated only");
    assert_eq!(grow(&mut client, &topic, 3, false), Ok(()));
    client.await_partitions(&topic, 3);
    assert_eq!(client.values(&topic, 0, UNCOMMITTED), ["kept"]);
    assert_eq!(client.end(&topic, 2), 0);
}

#[test]
fn a_topic_never_gets_fewer_partitions_or_as_many() {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    for count in [2, 1, 0, -1] {
        assert_eq!(grow(&mut client, &topic, count, false), Err(Code::InvalidPartitions), "{count}");
    }
    assert_eq!(grow(&mut client, &unique("nowhere"), 2, false), Err(Code::UnknownTopicOrPartition));
}
