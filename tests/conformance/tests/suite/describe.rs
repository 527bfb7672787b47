//! Smaller requests of tools: describe the cluster and partitions, delete offsets.

use flechtwerk_conformance::*;
use kafka_protocol::messages::describe_producers_request::TopicRequest as OfTopic;
use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::{
    DescribeClusterRequest, DescribeGroupsRequest, DescribeProducersRequest, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse, DescribeTransactionsRequest, MetadataRequest, OffsetDeleteRequest,
};

#[test]
fn the_cluster_is_described_as_in_the_metadata() {
    let mut client = Broker::get().client();
    let metadata = client.call(&MetadataRequest::default().with_topics(Some(Vec::new())));
    let cluster = client.call(&DescribeClusterRequest::default().with_endpoint_type(1));
    assert_eq!(cluster.error_code, 0);
    assert_eq!(Some(cluster.cluster_id), metadata.cluster_id);
    let nodes = |list: Vec<(i32, String, i32)>| list;
    let described =
        cluster.brokers.iter().map(|one| (one.broker_id.0, one.host.as_str().to_owned(), one.port));
    let known = metadata.brokers.iter().map(|one| (one.node_id.0, one.host.as_str().to_owned(), one.port));
    assert_eq!(nodes(described.collect()), nodes(known.collect()));
}

fn describe(
    client: &mut Client,
    topics: &[&str],
    limit: i32,
    from: Option<(&str, i32)>,
) -> DescribeTopicPartitionsResponse {
    let topics = topics.iter().map(|name| TopicRequest::default().with_name(text(name).into()));
    let cursor = from.map(|(topic, partition)| {
        Cursor::default().with_topic_name(text(topic).into()).with_partition_index(partition)
    });
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(topics.collect())
        .with_response_partition_limit(limit)
        .with_cursor(cursor);
    client.call(&request)
}

#[test]
fn partitions_are_described_with_their_leaders() {
    let mut client = Broker::get().client();
    let (topic, nowhere) = (client.topic(2), unique("nowhere"));
    let answer = describe(&mut client, &[&topic, &nowhere], 100, None);
    let find = |name: &str| {
        let named = |one: &&_| topic_name(one).as_deref() == Some(name);
        answer.topics.iter().find(named).expect("the topic").clone()
    };
    let known = find(&topic);
    assert_eq!((known.error_code, known.partitions.len()), (0, 2));
    assert_eq!(known.topic_id, client.describe_topic(&topic).topic_id);
    assert!(known.partitions.iter().all(|one| one.replica_nodes == [one.leader_id]));
    assert_eq!(code(find(&nowhere).error_code), Err(Code::UnknownTopicOrPartition));
    assert!(answer.next_cursor.is_none());
}

#[test]
fn partitions_above_a_limit_are_described_from_a_cursor_on() {
    let mut client = Broker::get().client();
    let topic = client.topic(3);
    let first = describe(&mut client, &[&topic], 2, None);
    assert_eq!(first.topics[0].partitions.len(), 2);
    let cursor = first.next_cursor.expect("a cursor");
    assert_eq!((cursor.topic_name.as_str(), cursor.partition_index), (topic.as_str(), 2));
    let second = describe(&mut client, &[&topic], 2, Some((&topic, 2)));
    assert_eq!(second.topics[0].partitions.len(), 1);
    assert!(second.next_cursor.is_none());
}

#[test]
fn what_is_named_again_is_described_again() {
    let mut client = Broker::get().client();
    let (topic, group) = (client.topic(2), unique("group"));
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 1, &["a"]);
    client.commit_offset(&group, &topic, 0, 5).expect("committed");

    let groups = vec![text(&group).into(); 3];
    let described = client.call(&DescribeGroupsRequest::default().with_groups(groups)).groups;
    assert!(described.len() == 3 && described.iter().all(|one| *one == described[0]), "{described:?}");
    assert_eq!(described[0].group_state.as_str(), "Empty");

    let ids = vec![text(&producer.transactional_id).into(); 3];
    let request = DescribeTransactionsRequest::default().with_transactional_ids(ids);
    let described = client.call(&request).transaction_states;
    assert!(described.len() == 3 && described.iter().all(|one| *one == described[0]), "{described:?}");
    assert_eq!(described[0].topics[0].partitions, [1]);

    let of_topic = OfTopic::default().with_name(text(&topic).into()).with_partition_indexes(vec![1, 0, 1]);
    let request = DescribeProducersRequest::default().with_topics(vec![of_topic; 2]);
    let described = client.call(&request).topics;
    let producers = described.iter().flat_map(|topic| &topic.partitions);
    let producers = producers.map(|one| (one.partition_index, one.active_producers.len()));
    assert_eq!(producers.collect::<Vec<_>>(), [(1, 1), (0, 0), (1, 1), (1, 1), (0, 0), (1, 1)]);

    // Metadata is told once.
    let named = MetadataRequestTopic::default().with_name(Some(text(&topic).into()));
    let metadata = client.call(&MetadataRequest::default().with_topics(Some(vec![named; 3])));
    assert_eq!(metadata.topics.len(), 1);
}

fn topic_name(
    topic: &kafka_protocol::messages::describe_topic_partitions_response::DescribeTopicPartitionsResponseTopic,
) -> Option<String> {
    topic.name.as_ref().map(|name| name.as_str().to_owned())
}

fn delete_offset(client: &mut Client, group: &str, topic: &str, partition: i32) -> Answer<Answer> {
    let one = OffsetDeleteRequestPartition::default().with_partition_index(partition);
    let topic = OffsetDeleteRequestTopic::default().with_name(text(topic).into()).with_partitions(vec![one]);
    let request = OffsetDeleteRequest::default().with_group_id(text(group).into()).with_topics(vec![topic]);
    let answer = client.call(&request);
    code(answer.error_code).map(|()| code(answer.topics[0].partitions[0].error_code))
}

#[test]
fn an_offset_can_be_deleted_and_the_others_stay() {
    let mut client = Broker::get().client();
    let (topic, group) = (client.topic(2), unique("group"));
    assert_eq!(client.commit_offset(&group, &topic, 0, 5), Ok(()));
    assert_eq!(client.commit_offset(&group, &topic, 1, 6), Ok(()));
    assert_eq!(delete_offset(&mut client, &group, &topic, 0), Ok(Ok(())));
    assert_eq!((client.committed(&group, &topic, 0), client.committed(&group, &topic, 1)), (-1, 6));
}

#[test]
fn the_offset_of_an_unknown_group_or_topic_can_not_be_deleted() {
    let mut client = Broker::get().client();
    let (topic, group) = (client.topic(1), unique("group"));
    assert_eq!(delete_offset(&mut client, &unique("no-group"), &topic, 0), Err(Code::GroupIdNotFound));
    assert_eq!(client.commit_offset(&group, &topic, 0, 5), Ok(()));
    assert_eq!(
        delete_offset(&mut client, &group, &unique("nowhere"), 0),
        Ok(Err(Code::UnknownTopicOrPartition))
    );
}
