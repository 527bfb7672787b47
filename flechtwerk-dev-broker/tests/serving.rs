//! The broker from outside, over plain connections: what it serves, and what bad input does.

mod support;

use flechtwerk_dev_broker::{Api, DevBroker, ErrorCode, NewTopic};
use kafka_protocol::messages::api_versions_request::ApiVersionsRequest;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use kafka_protocol::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
use support::{Client, batch, fetch, produce, text, topic, until};

fn broker() -> DevBroker {
    DevBroker::builder().topic(("orders", 2)).start().unwrap()
}

#[test]
fn api_versions_names_exactly_what_is_served() {
    let broker = broker();
    let mut client = Client::connect(broker.address());
    for version in 0..=4 {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(text("test"))
            .with_client_software_version(text("1"));
        let answer = client.call(version, &request);
        let named: Vec<_> =
            answer.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version))).collect();
        let served: Vec<_> = Api::ALL.iter().map(|api| (api.key(), api.versions())).collect();
        assert_eq!(named, served);
    }
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_by_version_0() {
    let broker = broker();
    let mut client = Client::connect(broker.address());
    // Key, version, correlation id, client id: no body is looked at.
    client.raw(&[0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff, 0]).unwrap();
    let frame = client.frame().unwrap();
    assert_eq!(frame[..], [0, 0, 0, 7, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4]);
    client.call(0, &ApiVersionsRequest::default());
}

#[test]
fn every_kind_of_bad_input_closes_its_connection_and_nothing_else() {
    let broker = broker();
    let mut bystander = Client::connect(broker.address());
    let bad: [(&str, &[u8]); 8] = [
        ("a negative length", &[0xff, 0xff, 0xff, 0xff]),
        ("a length above the limit", &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("too short for a header", &[0, 0, 0, 2, 0, 3]),
        ("an unknown api", &[0, 0, 0, 10, 0x03, 0xe7, 0, 0, 0, 0, 0, 1, 0xff, 0xff]),
        ("an unknown version", &[0, 0, 0, 10, 0, 3, 0, 99, 0, 0, 0, 1, 0xff, 0xff]),
        ("a client id that is longer than the frame", &[0, 0, 0, 10, 0, 3, 0, 0, 0, 0, 0, 1, 0x7f, 0xff]),
        (
            "an array that claims two thousand million items",
            &[0, 0, 0, 14, 0, 3, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff],
        ),
        ("words of another protocol", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ];
    for (what, bytes) in bad {
        let mut client = Client::connect(broker.address());
        client.bytes(bytes).unwrap();
        assert!(client.is_closed(), "{what}");
        bystander.call(0, &MetadataRequest::default().with_topics(Some(Vec::new())));
    }
    // Cut off: the broker only knows when no more can come.
    let mut client = Client::connect(broker.address());
    client.bytes(&[0, 0, 0, 100, 0, 3]).unwrap();
    client.finish();
    assert!(client.is_closed());
}

#[test]
fn bytes_behind_a_request_are_let_pass() {
    let broker = broker();
    let mut client = Client::connect(broker.address());
    // Metadata version 12 for all topics, and three bytes more, as librdkafka sends it.
    client.raw(&[0, 3, 0, 12, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let frame = client.frame().unwrap();
    assert!(frame.windows(6).any(|bytes| bytes == b"orders"));
}

#[test]
fn what_is_produced_is_fetched() {
    let broker = broker();
    let mut client = Client::connect(broker.address());
    for (offset, version) in (0..).zip(3..=10) {
        let answer = client.call(version, &produce("orders", 1, batch(b"hello")));
        let partition = &answer.responses[0].partition_responses[0];
        assert_eq!((partition.error_code, partition.base_offset), (0, offset));
    }
    for version in 4..=12 {
        let answer = client.call(version, &fetch("orders", 1, 3, 0));
        let partition = &answer.responses[0].partitions[0];
        assert_eq!((partition.error_code, partition.high_watermark), (0, 8));
        let records = partition.records.as_ref().unwrap();
        assert_eq!(records[..8], 3i64.to_be_bytes());
        assert_eq!(records.len(), 5 * batch(b"hello").len());
    }
}

#[test]
fn a_fetch_waits_for_records_and_no_longer() {
    let broker = broker();
    let mut reader = Client::connect(broker.address());
    reader.send(11, &fetch("orders", 0, 0, 20_000)).unwrap();
    until("the fetch has come", || broker.requests().count(Api::Fetch) == 1);
    let mut writer = Client::connect(broker.address());
    writer.call(9, &produce("orders", 0, batch(b"late")));
    let answer = reader.answer::<kafka_protocol::messages::FetchRequest>(11).unwrap();
    assert!(!answer.responses[0].partitions[0].records.as_ref().unwrap().is_empty());
}

#[test]
fn a_produce_without_acknowledgement_has_no_answer_or_closes() {
    let broker = broker();
    let mut client = Client::connect(broker.address());
    client.send(9, &produce("orders", 0, batch(b"quiet")).with_acks(0)).unwrap();
    // The next answer is that of the next request.
    let answer = client.call(9, &produce("orders", 0, batch(b"loud")));
    assert_eq!(answer.responses[0].partition_responses[0].base_offset, 1);
    client.send(9, &produce("missing", 0, batch(b"quiet")).with_acks(0)).unwrap();
    assert!(client.is_closed());
}

#[test]
fn a_damaged_batch_is_refused_and_the_connection_stays() {
    let broker = broker();
    let mut client = Client::connect(broker.address());
    let mut damaged = batch(b"hello").to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let answer = client.call(9, &produce("orders", 0, damaged.into()));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::CORRUPT_MESSAGE.code());
    let answer = client.call(9, &produce("orders", 0, batch(b"hello")));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
}

#[test]
fn topics_are_not_created_unless_that_is_said() {
    let wanted = |name: &str| {
        let topic = MetadataRequestTopic::default().with_name(Some(topic(name)));
        MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(true)
    };
    let broker = broker();
    let answer = Client::connect(broker.address()).call(9, &wanted("new"));
    assert_eq!(answer.topics[0].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.code());
    let broker = DevBroker::builder().auto_create_topics(true).start().unwrap();
    let answer = Client::connect(broker.address()).call(9, &wanted("new"));
    assert_eq!((answer.topics[0].error_code, answer.topics[0].partitions.len()), (0, 1));
    let answer = Client::connect(broker.address()).call(9, &wanted("no/name"));
    assert_eq!(answer.topics[0].error_code, ErrorCode::INVALID_TOPIC_EXCEPTION.code());
}

#[test]
fn topics_with_bad_names_numbers_or_settings_are_refused() {
    let broker = broker();
    let mut client = Client::connect(broker.address());
    let mut refused = |creatable: CreatableTopic| {
        let request = CreateTopicsRequest::default().with_topics(vec![creatable]).with_timeout_ms(1000);
        ErrorCode::new(client.call(7, &request).topics[0].error_code)
    };
    let new = |name: &str, partitions| {
        CreatableTopic::default()
            .with_name(topic(name))
            .with_num_partitions(partitions)
            .with_replication_factor(1)
    };
    assert_eq!(refused(new("..", 1)), ErrorCode::INVALID_TOPIC_EXCEPTION);
    assert_eq!(refused(new("a b", 1)), ErrorCode::INVALID_TOPIC_EXCEPTION);
    assert_eq!(refused(new(&"x".repeat(250), 1)), ErrorCode::INVALID_TOPIC_EXCEPTION);
    assert_eq!(refused(new("orders", 1)), ErrorCode::TOPIC_ALREADY_EXISTS);
    assert_eq!(refused(new("none", 0)), ErrorCode::INVALID_PARTITIONS);
    assert_eq!(refused(new("many", i32::MAX)), ErrorCode::POLICY_VIOLATION);
    assert_eq!(refused(new("wide", 1).with_replication_factor(2)), ErrorCode::INVALID_REPLICATION_FACTOR);
    let config = |name: &str, value: &str| {
        kafka_protocol::messages::create_topics_request::CreatableTopicConfig::default()
            .with_name(text(name))
            .with_value(Some(text(value)))
    };
    let with = |name: &str, value: &str| new("set", 1).with_configs(vec![config(name, value)]);
    assert_eq!(refused(with("no.such.setting", "1")), ErrorCode::INVALID_CONFIG);
    assert_eq!(refused(with("cleanup.policy", "burn")), ErrorCode::INVALID_CONFIG);
    assert_eq!(refused(with("retention.ms", "soon")), ErrorCode::INVALID_CONFIG);
    assert_eq!(refused(with("cleanup.policy", "compact,delete")), ErrorCode::NONE);
}

#[test]
fn a_topic_at_the_start_is_there() {
    let compacted = NewTopic::new("totals", 1).config("cleanup.policy", "compact");
    let broker = DevBroker::builder().topic(compacted).start().unwrap();
    assert_eq!(broker.compact("totals").unwrap(), 0);
    assert!(broker.compact("nothing").unwrap_err().to_string().contains("doesn't exist"));
    broker.create_topic(("plain", 1)).unwrap();
    assert!(broker.compact("plain").unwrap_err().to_string().contains("cleanup.policy=compact"));
    let error = broker.create_topic(("plain", 1)).unwrap_err();
    assert!(error.to_string().contains("TOPIC_ALREADY_EXISTS"), "{error}");
}
