//! What is written is there, as it was written.

use flechtwerk_conformance::calls::records::produce_request;
use flechtwerk_conformance::codec::{GZIP, LZ4, SNAPPY, ZSTD};
use flechtwerk_conformance::*;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ApiVersionsRequest, ProduceRequest};

#[test]
fn batches_get_consecutive_offsets_from_0() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    assert_eq!(client.produce(&topic, 0, &Batch::of(["a", "b", "c"])), Ok(0));
    assert_eq!(client.produce(&topic, 0, &Batch::of(["d"])), Ok(3));
    assert_eq!(client.produce(&topic, 0, &Batch::of(["e", "f"])), Ok(4));
    assert_eq!(client.end(&topic, 0), 6);
    let seen = client.read(&topic, 0, 0, UNCOMMITTED);
    let wanted: Vec<(i64, String)> = (0..).zip(["a", "b", "c", "d", "e", "f"].map(str::to_owned)).collect();
    assert_eq!(seen, wanted);
}

#[test]
fn partitions_have_offsets_of_their_own() {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    assert_eq!(client.produce(&topic, 0, &Batch::of(["a"])), Ok(0));
    assert_eq!(client.produce(&topic, 1, &Batch::of(["b"])), Ok(0));
    assert_eq!(client.values(&topic, 1, UNCOMMITTED), ["b"]);
}

#[test]
fn keys_values_headers_nulls_and_timestamps_come_back_unchanged() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let records = vec![
        Record {
            key: Some(b"key".to_vec()),
            value: Some(vec![0, 255, 7]),
            timestamp_delta: 0,
            headers: vec![("h".to_owned(), Some(b"v".to_vec())), ("h".to_owned(), None)],
        },
        Record { key: None, value: None, timestamp_delta: 12, headers: Vec::new() },
        Record { key: Some(Vec::new()), value: Some(Vec::new()), timestamp_delta: -3, headers: Vec::new() },
    ];
    let batch = Batch::records(records.clone());
    client.produce(&topic, 0, &batch).expect("a batch");
    let read = client.fetch(&topic, 0, 0, UNCOMMITTED).expect("a fetch").batches.remove(0);
    assert_eq!(read.records, (0..).zip(records).collect::<Vec<_>>());
    assert_eq!((read.base_timestamp, read.max_timestamp), (batch.base_timestamp, batch.base_timestamp + 12));
    assert!(read.crc_is_right);
    assert_eq!((read.magic, read.attributes), (2, 0));
}

#[test]
fn a_batch_has_the_leader_epoch_of_the_metadata() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let epoch = client.describe_topic(&topic).partitions[0].leader_epoch;
    // Whatever the client wrote there.
    for (offset, leader_epoch) in (0..).zip([-1, 0, 7, i32::MAX, i32::MIN]) {
        let batch = Batch { leader_epoch, ..Batch::of(["a"]) };
        assert_eq!(client.produce(&topic, 0, &batch), Ok(offset), "{leader_epoch}");
        let read = client.fetch(&topic, 0, offset, UNCOMMITTED).expect("a fetch").batches.remove(0);
        assert_eq!((read.leader_epoch, read.crc_is_right), (epoch, true), "{leader_epoch}");
    }
}

#[test]
fn compressed_batches_pass_through_byte_by_byte() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    for (number, codec) in [GZIP, SNAPPY, LZ4, ZSTD].into_iter().enumerate() {
        let batch = Batch::of(["first", "second"]).compressed(codec);
        let from = 2 * number as i64;
        assert_eq!(client.produce(&topic, 0, &batch), Ok(from), "codec {codec}");
        let read = client.fetch(&topic, 0, from, UNCOMMITTED).expect("a fetch").batches.remove(0);
        assert_eq!(read.attributes, codec);
        assert_eq!(read.body, batch.encode()[61..], "codec {codec}");
        assert!(read.crc_is_right);
        assert_eq!(read.records.len(), 2);
    }
}

#[test]
fn acks_of_one_are_answered_with_the_offset() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let request = produce_request(&topic, 0, Batch::of(["a"]).encode(), None).with_acks(1);
    let answer = &client.call(&request).responses[0].partition_responses[0];
    assert_eq!((answer.error_code, answer.base_offset), (0, 0));
}

#[test]
fn acks_of_none_are_not_answered_and_the_records_are_there() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    client.send(&produce_request(&topic, 0, Batch::of(["a"]).encode(), None).with_acks(0));
    // The next answer on this connection belongs to the next request: its correlation id says so.
    client.call_at(0, &ApiVersionsRequest::default());
    wait_for("the record is there", || client.end(&topic, 0) == 1);
}

/// There is no answer that could carry the error, so that the client has to be told otherwise.
#[test]
fn an_error_with_acks_of_none_closes_the_connection() {
    let mut client = Broker::get().client();
    client.send(&produce_request(&unique("nowhere"), 0, Batch::of(["a"]).encode(), None).with_acks(0));
    assert!(client.is_closed_within(client::ANSWER));
}

#[test]
fn the_answer_names_the_first_offset_of_the_log() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    client.produce(&topic, 0, &Batch::of(["a", "b"])).expect("a batch");
    assert_eq!(client.delete_records(&topic, 0, 1), Ok(1));
    let answer = client.produce_as(&topic, 0, Batch::of(["c"]).encode(), None);
    assert_eq!((answer.base_offset, answer.log_start_offset), (2, 1));
}

/// -1 says that the records keep their own timestamps.
#[test]
fn the_answer_has_no_append_time_unless_the_topic_asks_for_it() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    assert_eq!(client.produce_as(&topic, 0, Batch::of(["a"]).encode(), None).log_append_time_ms, -1);
}

#[test]
fn a_topic_with_append_times_stamps_the_batches() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, &[("message.timestamp.type", "LogAppendTime")]);
    let before = batch::now();
    let answer = client.produce_as(&topic, 0, Batch::of(["a"]).at(1000).encode(), None);
    assert_eq!(code(answer.error_code), Ok(()));
    assert!(answer.log_append_time_ms >= before - 1000);
    let read = client.fetch(&topic, 0, 0, UNCOMMITTED).expect("a fetch").batches.remove(0);
    assert_eq!(read.attributes & batch::LOG_APPEND_TIME, batch::LOG_APPEND_TIME);
    assert_eq!(read.max_timestamp, answer.log_append_time_ms);
    assert!(read.crc_is_right);
}

#[test]
fn one_request_writes_to_many_partitions_and_each_has_its_answer() {
    let mut client = Broker::get().client();
    let (one, other, nowhere) = (client.topic(2), client.topic(1), unique("nowhere"));
    let data = |partition: i32, value: &str| {
        PartitionProduceData::default().with_index(partition).with_records(Some(Batch::of([value]).encode()))
    };
    let topic =
        |name: &str, data| TopicProduceData::default().with_name(text(name).into()).with_partition_data(data);
    let request = ProduceRequest::default().with_acks(-1).with_timeout_ms(10_000).with_topic_data(vec![
        topic(&one, vec![data(0, "a"), data(1, "b"), data(7, "none")]),
        topic(&other, vec![data(0, "c")]),
        topic(&nowhere, vec![data(0, "d")]),
    ]);
    let answer = client.call(&request);
    let result = |name: &str, index: i32| {
        let topic = answer.responses.iter().find(|topic| topic.name.as_str() == name).expect("a topic");
        let partition = topic.partition_responses.iter().find(|one| one.index == index).expect("a partition");
        code(partition.error_code).map(|()| partition.base_offset)
    };
    assert_eq!(result(&one, 0), Ok(0));
    assert_eq!(result(&one, 1), Ok(0));
    assert_eq!(result(&one, 7), Err(Code::UnknownTopicOrPartition));
    assert_eq!(result(&other, 0), Ok(0));
    assert_eq!(result(&nowhere, 0), Err(Code::UnknownTopicOrPartition));
    assert_eq!(client.values(&one, 1, UNCOMMITTED), ["b"]);
}

#[test]
fn requests_sent_without_waiting_are_answered_in_order() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let version = client.version::<ProduceRequest>();
    let header = <ProduceRequest as kafka_protocol::protocol::HeaderVersion>::header_version(version);
    for number in 0..20 {
        let request = produce_request(&topic, 0, Batch::of([number.to_string()]).encode(), None);
        client.send_bytes(&client::frame(0, version, 500 + number, header, &request));
    }
    for number in 0..20 {
        let answer = client.receive_frame(client::ANSWER).expect("an answer");
        assert_eq!(i32::from_be_bytes(answer[..4].try_into().expect("four bytes")), 500 + number);
    }
    let wanted: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(client.values(&topic, 0, UNCOMMITTED), wanted);
}
