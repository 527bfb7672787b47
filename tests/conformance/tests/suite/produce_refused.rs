//! What a broker does not write: each refusal with its code, and with nothing in the log.

use bytes::Bytes;
use flechtwerk_conformance::calls::records::produce_request;
use flechtwerk_conformance::*;

/// The code for this batch on a topic of its own, in which nothing may be found afterwards.
fn refused(batch: &Batch) -> Option<Code> {
    refused_bytes(batch.encode(), &[])
}

fn refused_bytes(records: Bytes, configs: &[(&str, &str)]) -> Option<Code> {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, configs);
    let answer = client.produce_as(&topic, 0, records, None);
    assert_eq!(client.end(&topic, 0), 0, "nothing is appended");
    assert_eq!(client.produce(&topic, 0, &Batch::keyed(&[("k", "v")])), Ok(0), "the partition goes on");
    code(answer.error_code).err()
}

#[test]
fn a_wrong_checksum_is_refused() {
    let mut batch = Batch::of(["a"]);
    batch.crc = Some(77);
    assert_eq!(refused(&batch), Some(Code::CorruptMessage));
}

#[test]
fn an_older_magic_is_refused() {
    let mut batch = Batch::of(["a"]);
    for magic in [0, 1] {
        batch.magic = magic;
        assert_eq!(refused(&batch), Some(Code::InvalidRecord), "{magic}");
    }
}

#[test]
fn an_unknown_magic_is_refused() {
    let mut batch = Batch::of(["a"]);
    batch.magic = 3;
    assert_eq!(refused(&batch), Some(Code::CorruptMessage));
}

#[test]
fn a_batch_that_does_not_begin_at_offset_0_is_refused() {
    let mut batch = Batch::of(["a", "b"]);
    for base_offset in [1, 1000, i64::MAX, -1, i64::MIN] {
        batch.base_offset = base_offset;
        assert_eq!(refused(&batch), Some(Code::InvalidRecord), "{base_offset}");
    }
}

#[test]
fn a_count_that_is_not_the_last_offset_less_the_first_is_refused() {
    let mut batch = Batch::of(["a", "b"]);
    batch.count = Some(3);
    assert_eq!(refused(&batch), Some(Code::InvalidRecord));
    let mut batch = Batch::of(["a", "b"]);
    batch.last_offset_delta = Some(5);
    assert_eq!(refused(&batch), Some(Code::InvalidRecord));
}

#[test]
fn a_count_beyond_the_records_is_refused() {
    let mut batch = Batch::of(["a", "b"]);
    (batch.count, batch.last_offset_delta) = (Some(5), Some(4));
    assert_eq!(refused(&batch), Some(Code::InvalidRecord));
}

#[test]
fn records_behind_the_count_are_refused() {
    let mut batch = Batch::of(["a", "b", "c"]);
    (batch.count, batch.last_offset_delta) = (Some(2), Some(1));
    assert_eq!(refused(&batch), Some(Code::InvalidRecord));
}

#[test]
fn a_batch_without_records_is_refused() {
    assert_eq!(refused(&Batch::of::<&str>([])), Some(Code::InvalidRecord));
}

#[test]
fn no_batch_at_all_is_refused() {
    assert_eq!(refused_bytes(Bytes::new(), &[]), Some(Code::InvalidRecord));
}

#[test]
fn two_batches_in_one_are_refused() {
    let bytes = [Batch::of(["a"]).encode(), Batch::of(["b"]).encode()].concat();
    assert_eq!(refused_bytes(bytes.into(), &[]), Some(Code::InvalidRecord));
}

#[test]
fn a_batch_that_is_cut_off_is_refused() {
    let whole = Batch::of(["a longer value"]).encode();
    assert_eq!(refused_bytes(whole.slice(..whole.len() - 3), &[]), Some(Code::InvalidRecord));
}

#[test]
fn a_batch_whose_length_lies_is_refused() {
    let mut batch = Batch::of(["a"]);
    batch.length = Some(1000);
    assert_eq!(refused(&batch), Some(Code::InvalidRecord));
    // The code for this one is whatever a calculation that overflows ends with.
    batch.length = Some(i32::MAX);
    assert!(refused(&batch).is_some());
    for length in [-1, 0, 10] {
        let mut batch = Batch::of(["a"]);
        batch.length = Some(length);
        assert_eq!(refused(&batch), Some(Code::CorruptMessage), "{length}");
    }
}

#[test]
fn a_control_batch_from_a_client_is_refused() {
    let mut batch = Batch::records(vec![Record {
        key: Some(vec![0, 0, 0, 1]),
        value: Some(vec![0, 0, 0, 0, 0, 0]),
        ..Record::default()
    }]);
    batch.attributes |= batch::CONTROL;
    assert_eq!(refused(&batch), Some(Code::InvalidRecord));
}

#[test]
fn a_batch_above_the_limit_is_refused() {
    let bytes = Batch::of(["x".repeat(2000)]).encode();
    assert_eq!(refused_bytes(bytes, &[("max.message.bytes", "1000")]), Some(Code::MessageTooLarge));
    let beyond_the_default = Batch::of(["x".repeat(1_048_588)]).encode();
    assert_eq!(refused_bytes(beyond_the_default, &[]), Some(Code::MessageTooLarge));
}

#[test]
fn a_batch_of_exactly_the_limit_is_taken() {
    let mut client = Broker::get().client();
    let batch = Batch::of(["x".repeat(2000)]);
    let limit = batch.encode().len();
    let topic = client.topic_with(1, &[("max.message.bytes", &limit.to_string())]);
    assert_eq!(client.produce(&topic, 0, &batch), Ok(0));
    assert_eq!(client.produce(&topic, 0, &Batch::of(["x".repeat(2001)])), Err(Code::MessageTooLarge));
}

#[test]
fn a_record_without_a_key_is_refused_where_the_topic_is_compacted() {
    let bytes = Batch::of(["a"]).encode();
    assert_eq!(refused_bytes(bytes.clone(), &[("cleanup.policy", "compact")]), Some(Code::InvalidRecord));
    assert_eq!(refused_bytes(bytes, &[("cleanup.policy", "compact,delete")]), Some(Code::InvalidRecord));
}

#[test]
fn a_timestamp_more_than_an_hour_ahead_is_refused() {
    let ahead = Batch::of(["a"]).at(batch::now() + 2 * 3_600_000);
    assert_eq!(refused(&ahead), Some(Code::InvalidTimestamp));
}

#[test]
fn an_unknown_topic_or_partition_is_refused() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    assert_eq!(client.produce(&unique("nowhere"), 0, &Batch::of(["a"])), Err(Code::UnknownTopicOrPartition));
    for partition in [1, -1] {
        assert_eq!(client.produce(&topic, partition, &Batch::of(["a"])), Err(Code::UnknownTopicOrPartition));
    }
}

#[test]
fn acks_other_than_all_one_and_none_are_refused() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    for acks in [2, -2] {
        let request = produce_request(&topic, 0, Batch::of(["a"]).encode(), None).with_acks(acks);
        let answer = &client.call(&request).responses[0].partition_responses[0];
        assert_eq!(code(answer.error_code), Err(Code::InvalidRequiredAcks), "{acks}");
    }
    assert_eq!(client.end(&topic, 0), 0);
}
