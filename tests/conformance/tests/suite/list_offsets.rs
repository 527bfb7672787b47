//! Offsets by time, the ends of a partition, and the ends of leader epochs.

use flechtwerk_conformance::codec::GZIP;
use flechtwerk_conformance::*;
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::offset_for_leader_epoch_response::EpochEndOffset;
use kafka_protocol::messages::{BrokerId, ListOffsetsRequest, OffsetForLeaderEpochRequest};

/// Records at the times 1000, 1010, 1020 in one batch and at 1500 in another.
fn filled(client: &mut Client) -> String {
    let topic = client.topic_with(1, &[("retention.ms", "-1")]);
    let at = |timestamp_delta| Record { value: Some(b"v".to_vec()), timestamp_delta, ..Record::default() };
    client.produce(&topic, 0, &Batch::records(vec![at(0), at(10), at(20)]).at(1000)).expect("a batch");
    client.produce(&topic, 0, &Batch::of(["v"]).at(1500)).expect("a batch");
    topic
}

#[test]
fn an_empty_partition_starts_and_ends_at_0() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    for which in [EARLIEST, LATEST] {
        let answer = client.list_offset_full(&topic, 0, which, UNCOMMITTED);
        assert_eq!((answer.error_code, answer.offset, answer.timestamp), (0, 0, -1));
    }
}

#[test]
fn the_earliest_offset_follows_deleted_records_and_the_latest_the_end() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client);
    assert_eq!(client.list_offset(&topic, 0, EARLIEST, UNCOMMITTED), Ok(0));
    assert_eq!(client.list_offset(&topic, 0, LATEST, UNCOMMITTED), Ok(4));
    assert_eq!(client.delete_records(&topic, 0, 2), Ok(2));
    assert_eq!(client.list_offset(&topic, 0, EARLIEST, UNCOMMITTED), Ok(2));
}

#[test]
fn a_time_finds_the_first_record_that_is_not_before_it() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client);
    for (time, offset, found) in
        [(0, 0, 1000), (1000, 0, 1000), (1001, 1, 1010), (1010, 1, 1010), (1020, 2, 1020), (1021, 3, 1500)]
    {
        let answer = client.list_offset_full(&topic, 0, time, UNCOMMITTED);
        assert_eq!((answer.error_code, answer.offset, answer.timestamp), (0, offset, found), "time {time}");
    }
}

#[test]
fn a_time_behind_all_records_finds_none() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client);
    let answer = client.list_offset_full(&topic, 0, 1501, UNCOMMITTED);
    assert_eq!((answer.error_code, answer.offset, answer.timestamp), (0, -1, -1));
}

#[test]
fn a_time_is_found_inside_a_compressed_batch() {
    let mut client = Broker::get().client();
    let topic = client.topic_with(1, &[("retention.ms", "-1")]);
    let at = |timestamp_delta| Record { value: Some(b"v".to_vec()), timestamp_delta, ..Record::default() };
    let batch = Batch::records(vec![at(0), at(10), at(20)]).at(1000).compressed(GZIP);
    client.produce(&topic, 0, &batch).expect("a batch");
    let answer = client.list_offset_full(&topic, 0, 1005, UNCOMMITTED);
    assert_eq!((answer.error_code, answer.offset, answer.timestamp), (0, 1, 1010));
}

#[test]
fn deleted_records_are_not_found_by_time() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client);
    assert_eq!(client.delete_records(&topic, 0, 2), Ok(2));
    let answer = client.list_offset_full(&topic, 0, 0, UNCOMMITTED);
    assert_eq!((answer.error_code, answer.offset, answer.timestamp), (0, 2, 1020));
}

#[test]
fn the_record_with_the_highest_time_is_found() {
    let mut client = Broker::get().client();
    if client.version::<ListOffsetsRequest>() < 7 {
        return;
    }
    let topic = client.topic_with(1, &[("retention.ms", "-1")]);
    let answer = client.list_offset_full(&topic, 0, MAX_TIMESTAMP, UNCOMMITTED);
    assert_eq!((answer.error_code, answer.offset, answer.timestamp), (0, -1, -1));
    let at = |timestamp_delta| Record { value: Some(b"v".to_vec()), timestamp_delta, ..Record::default() };
    client.produce(&topic, 0, &Batch::records(vec![at(0), at(30), at(20)]).at(1000)).expect("a batch");
    client.produce(&topic, 0, &Batch::of(["v"]).at(900)).expect("a batch");
    let answer = client.list_offset_full(&topic, 0, MAX_TIMESTAMP, UNCOMMITTED);
    assert_eq!((answer.error_code, answer.offset, answer.timestamp), (0, 1, 1030));
}

#[test]
fn the_answer_names_the_leader_epoch_of_what_it_found() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client);
    let epoch = client.describe_topic(&topic).partitions[0].leader_epoch;
    for time in [EARLIEST, LATEST, 1000] {
        assert_eq!(client.list_offset_full(&topic, 0, time, UNCOMMITTED).leader_epoch, epoch, "{time}");
    }
}

#[test]
fn an_unknown_topic_or_partition_has_no_offsets() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let unknown = Err(Code::UnknownTopicOrPartition);
    assert_eq!(client.list_offset(&unique("nowhere"), 0, LATEST, UNCOMMITTED), unknown);
    assert_eq!(client.list_offset(&topic, 1, LATEST, UNCOMMITTED), unknown);
}

fn epoch_end(client: &mut Client, topic: &str, partition: i32, current: i32, epoch: i32) -> EpochEndOffset {
    let one = OffsetForLeaderPartition::default()
        .with_partition(partition)
        .with_current_leader_epoch(current)
        .with_leader_epoch(epoch);
    let topic = OffsetForLeaderTopic::default().with_topic(text(topic).into()).with_partitions(vec![one]);
    let request =
        OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    client.call(&request).topics.remove(0).partitions.remove(0)
}

#[test]
fn the_current_leader_epoch_ends_at_the_end() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client);
    let epoch = client.describe_topic(&topic).partitions[0].leader_epoch;
    let answer = epoch_end(&mut client, &topic, 0, -1, epoch);
    assert_eq!((answer.error_code, answer.leader_epoch, answer.end_offset), (0, epoch, 4));
}

#[test]
fn a_leader_epoch_that_is_still_to_come_has_no_end() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client);
    let epoch = client.describe_topic(&topic).partitions[0].leader_epoch;
    let answer = epoch_end(&mut client, &topic, 0, -1, epoch + 5);
    assert_eq!((answer.error_code, answer.leader_epoch, answer.end_offset), (0, -1, -1));
}

#[test]
fn a_client_with_a_newer_leader_epoch_is_told_so() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client);
    let epoch = client.describe_topic(&topic).partitions[0].leader_epoch;
    let answer = epoch_end(&mut client, &topic, 0, epoch + 1, epoch);
    assert_eq!(code(answer.error_code), Err(Code::UnknownLeaderEpoch));
    let answer = epoch_end(&mut client, &topic, 9, -1, epoch);
    assert_eq!(code(answer.error_code), Err(Code::UnknownTopicOrPartition));
}
