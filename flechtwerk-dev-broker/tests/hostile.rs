//! Requests that are small and ask for much: each is answered, and soon enough that others don't notice.

mod support;

use flechtwerk_dev_broker::{DevBroker, NewTopic};
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, BrokerId, CreateTopicsRequest, DescribeConfigsRequest,
    IncrementalAlterConfigsRequest, JoinGroupRequest, ListOffsetsRequest, ListTransactionsRequest,
    MetadataRequest, ProducerId,
};

use support::*;

const POLICY_VIOLATION: i16 = 44;

/// Nearly as many items as a request may have.
const MANY: i32 = 190_000;

#[test]
fn many_unknown_partitions_are_answered_soon() {
    let broker = DevBroker::builder().start().unwrap();
    let topic_data =
        AddPartitionsToTxnTopic::default().with_name(topic("nowhere")).with_partitions((0..MANY).collect());
    let request = AddPartitionsToTxnRequest::default()
        .with_v3_and_below_transactional_id(text("tx").into())
        .with_v3_and_below_topics(vec![topic_data]);
    let answer = Client::connect(broker.address()).call(0, &request);
    let results = &answer.results_by_topic_v3_and_below[0].results_by_partition;
    assert_eq!(results.len(), MANY as usize);
}

#[test]
fn members_with_many_protocols_join_soon() {
    let broker = DevBroker::builder().start().unwrap();
    let join = |prefix: &str| {
        let protocol =
            |number| JoinGroupRequestProtocol::default().with_name(text(&format!("{prefix}{number:08}")));
        JoinGroupRequest::default()
            .with_group_id(text("group").into())
            .with_session_timeout_ms(60_000)
            .with_rebalance_timeout_ms(60_000)
            .with_protocol_type(text("consumer"))
            .with_protocols((0..MANY).map(protocol).collect())
    };
    let mut first = Client::connect(broker.address());
    assert_eq!(first.call(1, &join("a")).error_code, 0);
    // They have nothing in common, which takes a look at all of them to see.
    assert_eq!(Client::connect(broker.address()).call(1, &join("b")).error_code, 23);
}

#[test]
fn long_lists_are_appended_soon() {
    let broker = DevBroker::builder().topic(("abc", 1)).start().unwrap();
    let items =
        |from: i32| (from..from + 500_000).map(|item| format!("{item}:1")).collect::<Vec<_>>().join(",");
    let append = |from: i32| {
        let config = AlterableConfig::default()
            .with_name(text("leader.replication.throttled.replicas"))
            .with_config_operation(2)
            .with_value(Some(text(&items(from))));
        let resource = AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text("abc"))
            .with_configs(vec![config]);
        IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
    };
    let mut client = Client::connect(broker.address());
    assert_eq!(client.call(1, &append(1_000_000)).responses[0].error_code, 0);
    assert_eq!(client.call(1, &append(2_000_000)).responses[0].error_code, 0);
}

#[test]
fn a_topic_named_often_is_described_once() {
    let broker = DevBroker::builder().topic(("big", 10_000)).start().unwrap();
    let named = MetadataRequestTopic::default().with_name(Some(topic("big")));
    let request = MetadataRequest::default().with_topics(Some(vec![named; MANY as usize]));
    let answer = Client::connect(broker.address()).call(1, &request);
    assert_eq!(answer.topics.len(), 1);
    assert_eq!(answer.topics[0].partitions.len(), 10_000);
}

#[test]
fn one_request_creates_no_more_partitions_than_its_limit() {
    let broker = DevBroker::builder().start().unwrap();
    let new = |number: i32| {
        CreatableTopic::default()
            .with_name(topic(&format!("topic-{number}")))
            .with_num_partitions(10_000)
            .with_replication_factor(1)
    };
    let request = CreateTopicsRequest::default().with_topics((0..10_000).map(new).collect());
    let answer = Client::connect(broker.address()).call(5, &request);
    assert!(answer.topics.iter().all(|topic| topic.error_code == POLICY_VIOLATION));
}

#[test]
fn many_new_topics_are_answered_soon() {
    let broker = DevBroker::builder().start().unwrap();
    let new = |number: i32| {
        CreatableTopic::default()
            .with_name(topic(&format!("topic.{number}")))
            .with_num_partitions(1)
            .with_replication_factor(1)
    };
    let mut client = Client::connect(broker.address());
    let request = CreateTopicsRequest::default().with_topics((0..10_000).map(new).collect());
    let answer = client.call(2, &request);
    assert!(answer.topics.iter().all(|topic| topic.error_code == 0));
    // Now there are many of them.
    let request = CreateTopicsRequest::default().with_topics(
        (0..10_000).map(|number| new(number).with_name(topic(&format!("topic_{number}")))).collect(),
    );
    let answer = client.call(2, &request);
    assert!(answer.topics.iter().all(|topic| topic.error_code == 17));
    let request = MetadataRequest::default().with_topics(Some(
        (0..100_000)
            .map(|number| MetadataRequestTopic::default().with_name(Some(topic(&format!("none-{number}")))))
            .collect(),
    ));
    assert_eq!(client.call(1, &request).topics.len(), 100_000);
}

#[test]
fn a_log_is_not_searched_for_each_repetition() {
    let broker = DevBroker::builder().topic(("abc", 1)).start().unwrap();
    let mut client = Client::connect(broker.address());
    for _ in 0..2_000 {
        client.call(3, &produce("abc", 0, batch(b"value")));
    }
    let wanted = ListOffsetsPartition::default().with_timestamp(i64::MAX).with_current_leader_epoch(-1);
    let wanted =
        ListOffsetsTopic::default().with_name(topic("abc")).with_partitions(vec![wanted; MANY as usize]);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![wanted]);
    let answer = client.call(1, &request);
    assert_eq!(answer.topics[0].partitions.len(), 1);
}

#[test]
fn a_fetch_that_names_a_partition_often_reads_it_once() {
    let broker = DevBroker::builder().topic(("abc", 1)).start().unwrap();
    let mut client = Client::connect(broker.address());
    client.call(3, &produce("abc", 0, batch(&[b'v'; 1_000])));
    let mut request = fetch("abc", 0, 0, 0);
    request.max_bytes = i32::MAX;
    let wanted = request.topics[0].partitions[0].clone();
    request.topics[0].partitions = vec![wanted; 100_000];
    let answer = client.call(4, &request);
    assert_eq!(answer.responses[0].partitions.len(), 1);
}

#[test]
fn many_filters_are_looked_through_soon() {
    let broker = DevBroker::builder().start().unwrap();
    let mut client = Client::connect(broker.address());
    for number in 0..2_000 {
        let request = kafka_protocol::messages::InitProducerIdRequest::default()
            .with_transactional_id(Some(text(&format!("tx-{number}")).into()))
            .with_transaction_timeout_ms(60_000);
        assert_eq!(client.call(0, &request).error_code, 0);
    }
    let request = ListTransactionsRequest::default()
        .with_producer_id_filters((0..i64::from(MANY)).map(|id| ProducerId(id + 1_000_000)).collect());
    assert_eq!(client.call(0, &request).transaction_states.len(), 0);
}

#[test]
fn settings_asked_for_often_are_described_within_bounds() {
    let broker = DevBroker::builder().topic(("abc", 1)).start().unwrap();
    let resource = DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text("abc"))
        .with_configuration_keys(None);
    let request = DescribeConfigsRequest::default().with_resources(vec![resource; 60_000]);
    let answer = Client::connect(broker.address()).call(1, &request);
    assert_eq!(answer.results.len(), 1);
}

#[test]
fn those_that_stand_still_make_way_for_others() {
    let megabytes = |count: usize| count * 1024 * 1024;
    let builder = DevBroker::builder().max_request_bytes(megabytes(16));
    let broker =
        builder.topic(NewTopic::new("abc", 1).config("max.message.bytes", "16777216")).start().unwrap();
    // All that there is for requests on their way is taken by some that end in the middle.
    let stalled: Vec<Client> = (0..12)
        .map(|_| {
            let mut client = Client::connect(broker.address());
            let mut begin = vec![0, 0, 0, 3, 0, 0, 0, 1, 0, 1, b'x'];
            begin.splice(0..0, (megabytes(16) as u32).to_be_bytes());
            begin.resize(megabytes(15), 0);
            // Those that come late may be hung up on.
            let _ = client.bytes(&begin);
            client
        })
        .collect();
    let mut client = Client::connect(broker.address());
    let answer = client.call(3, &produce("abc", 0, batch(&vec![b'v'; megabytes(14)])));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    drop(stalled);

    // And by answers that nobody reads.
    let mut wanted = fetch("abc", 0, 0, 0);
    (wanted.max_bytes, wanted.topics[0].partitions[0].partition_max_bytes) = (i32::MAX, i32::MAX);
    let idle: Vec<Client> = (0..16)
        .map(|_| {
            let mut client = Client::connect(broker.address());
            client.send(4, &wanted).unwrap();
            client
        })
        .collect();
    let answer = client.call(3, &produce("abc", 0, batch(&vec![b'v'; megabytes(14)])));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    drop(idle);
}
