//! Reading: from where, how much, and how long to wait.

use flechtwerk_conformance::calls::records::{fetch_request, fetched, refusal};
use flechtwerk_conformance::*;
use kafka_protocol::messages::FetchRequest;
use std::time::Duration;

/// Long enough to tell a broker that waits from one that answers at once.
const A_WHILE: Duration = Duration::from_millis(150);

#[test]
fn an_empty_partition_answers_nothing_and_its_end() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let answer = client.fetch(&topic, 0, 0, UNCOMMITTED).expect("a fetch");
    assert!(answer.batches.is_empty());
    assert_eq!((answer.data.high_watermark, answer.data.log_start_offset), (0, 0));
}

#[test]
fn an_offset_behind_the_end_is_out_of_range_and_the_end_is_not() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    client.produce(&topic, 0, &Batch::of(["a"])).expect("a record");
    assert!(client.fetch(&topic, 0, 1, UNCOMMITTED).expect("a fetch at the end").batches.is_empty());
    assert_eq!(refusal(client.fetch(&topic, 0, 2, UNCOMMITTED)), Code::OffsetOutOfRange);
    assert_eq!(refusal(client.fetch(&topic, 0, -1, UNCOMMITTED)), Code::OffsetOutOfRange);
}

#[test]
fn an_offset_before_the_start_is_out_of_range() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    for value in ["a", "b", "c"] {
        client.produce(&topic, 0, &Batch::of([value])).expect("a record");
    }
    assert_eq!(client.delete_records(&topic, 0, 2), Ok(2));
    assert_eq!(refusal(client.fetch(&topic, 0, 1, UNCOMMITTED)), Code::OffsetOutOfRange);
    let answer = client.fetch(&topic, 0, 2, UNCOMMITTED).expect("a fetch");
    assert_eq!(answer.data.log_start_offset, 2);
}

#[test]
fn an_unknown_topic_or_partition_says_so() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    assert_eq!(refusal(client.fetch(&unique("nowhere"), 0, 0, UNCOMMITTED)), Code::UnknownTopicOrPartition);
    assert_eq!(refusal(client.fetch(&topic, 1, 0, UNCOMMITTED)), Code::UnknownTopicOrPartition);
}

#[test]
fn an_offset_inside_a_batch_answers_the_whole_batch() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    client.produce(&topic, 0, &Batch::of(["a", "b", "c"])).expect("a batch");
    client.produce(&topic, 0, &Batch::of(["d"])).expect("a batch");
    let answer = client.fetch(&topic, 0, 2, UNCOMMITTED).expect("a fetch");
    assert_eq!(answer.batches[0].base_offset, 0);
    assert_eq!(answer.batches.len(), 2);
    assert_eq!(client.read(&topic, 0, 2, UNCOMMITTED), [(2, "c".to_owned()), (3, "d".to_owned())]);
}

#[test]
fn a_reader_with_a_small_limit_gets_one_whole_batch_at_least() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    client.produce(&topic, 0, &Batch::of(["x".repeat(3000)])).expect("a batch");
    client.produce(&topic, 0, &Batch::of(["y".repeat(3000)])).expect("a batch");
    let mut request = fetch_request(&topic, &[(0, 0)], UNCOMMITTED).with_max_bytes(1);
    request.topics[0].partitions[0].partition_max_bytes = 1;
    let answer = fetched(client.call(&request).responses.remove(0).partitions.remove(0));
    assert_eq!(answer.batches.len(), 1);
    assert_eq!(answer.batches[0].base_offset, 0);
}

#[test]
fn the_limit_of_a_partition_holds_from_the_second_batch_on() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let batch = Batch::of(["x".repeat(1000)]);
    for _ in 0..10 {
        client.produce(&topic, 0, &batch).expect("a batch");
    }
    let size = batch.encode().len() as i32;
    let mut request = fetch_request(&topic, &[(0, 0)], UNCOMMITTED);
    request.topics[0].partitions[0].partition_max_bytes = 3 * size + size / 2;
    let answer = fetched(client.call(&request).responses.remove(0).partitions.remove(0));
    assert_eq!(answer.batches.len(), 3);
    assert!(answer.bytes <= (3 * size + size / 2) as usize);
}

#[test]
fn the_limit_of_an_answer_holds_over_its_partitions() {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    for partition in [0, 1] {
        client.produce(&topic, partition, &Batch::of(["x".repeat(3000)])).expect("a batch");
    }
    let request = fetch_request(&topic, &[(0, 0), (1, 0)], UNCOMMITTED).with_max_bytes(100);
    let answer = client.call(&request);
    let sizes: Vec<usize> = answer.responses[0]
        .partitions
        .iter()
        .map(|one| one.records.as_ref().map_or(0, |records| records.len()))
        .collect();
    assert_eq!(sizes.iter().filter(|size| **size > 0).count(), 1, "{sizes:?}");
}

#[test]
fn several_partitions_of_several_topics_answer_at_once_and_fail_one_by_one() {
    let mut client = Broker::get().client();
    let (one, other) = (client.topic(2), client.topic(1));
    client.produce(&one, 0, &Batch::of(["a"])).expect("a record");
    client.produce(&one, 1, &Batch::of(["b"])).expect("a record");
    client.produce(&other, 0, &Batch::of(["c"])).expect("a record");
    let mut request = fetch_request(&one, &[(0, 0), (1, 9), (5, 0)], UNCOMMITTED);
    request.topics.extend(fetch_request(&other, &[(0, 0)], UNCOMMITTED).topics);
    let answer = client.call(&request);
    let result = |topic: &str, partition: i32| {
        // A topic may come twice, once with what failed.
        let topics = answer.responses.iter().filter(|one| one.topic.as_str() == topic);
        let mut partitions = topics.flat_map(|topic| &topic.partitions);
        let one = partitions.find(|one| one.partition_index == partition).expect("a partition");
        code(one.error_code).map(|()| read::batches(one.records.clone().unwrap_or_default()).len())
    };
    assert_eq!(result(&one, 0), Ok(1));
    assert_eq!(result(&one, 1), Err(Code::OffsetOutOfRange));
    assert_eq!(result(&one, 5), Err(Code::UnknownTopicOrPartition));
    assert_eq!(result(&other, 0), Ok(1));
}

#[test]
fn a_fetch_at_the_end_waits_for_records() {
    let broker = Broker::get();
    let (mut reader, mut writer) = (broker.client(), broker.client());
    let topic = writer.topic(1);
    reader.send(&fetch_request(&topic, &[(0, 0)], UNCOMMITTED).with_max_wait_ms(15_000).with_min_bytes(1));
    assert!(reader.is_silent_for(A_WHILE), "an answer without records");
    writer.produce(&topic, 0, &Batch::of(["a"])).expect("a record");
    let mut answer = reader.receive::<FetchRequest>();
    assert_eq!(fetched(answer.responses.remove(0).partitions.remove(0)).batches.len(), 1);
}

#[test]
fn a_fetch_that_waits_answers_when_its_time_is_up() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    client.send(&fetch_request(&topic, &[(0, 0)], UNCOMMITTED).with_max_wait_ms(1_000).with_min_bytes(1));
    assert!(client.is_silent_for(A_WHILE), "an answer before its time");
    let answer = client.receive::<FetchRequest>();
    assert_eq!(answer.error_code, 0);
    let records =
        answer.responses.iter().flat_map(|topic| &topic.partitions).filter_map(|one| one.records.as_ref());
    assert!(records.map(|records| records.len()).sum::<usize>() == 0);
}

#[test]
fn a_fetch_waits_for_as_many_bytes_as_it_asks_for() {
    let broker = Broker::get();
    let (mut reader, mut writer) = (broker.client(), broker.client());
    let topic = writer.topic(2);
    let batch = Batch::of(["x".repeat(100)]);
    let two = 2 * batch.encode().len() as i32;
    writer.produce(&topic, 0, &batch).expect("a record");
    reader.send(
        &fetch_request(&topic, &[(0, 0), (1, 0)], UNCOMMITTED).with_max_wait_ms(15_000).with_min_bytes(two),
    );
    assert!(reader.is_silent_for(A_WHILE), "an answer with half of it");
    writer.produce(&topic, 1, &batch).expect("a record");
    let answer = reader.receive::<FetchRequest>();
    let sizes =
        answer.responses[0].partitions.iter().map(|one| one.records.as_ref().map_or(0, |bytes| bytes.len()));
    assert_eq!(sizes.sum::<usize>() as i32, two);
}

#[test]
fn a_fetch_with_an_error_does_not_wait() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let request = fetch_request(&topic, &[(0, 5)], UNCOMMITTED).with_max_wait_ms(i32::MAX).with_min_bytes(1);
    let answer = client.call(&request);
    assert_eq!(code(answer.responses[0].partitions[0].error_code), Err(Code::OffsetOutOfRange));
}

#[test]
fn a_newer_leader_epoch_than_the_brokers_is_unknown() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    client.produce(&topic, 0, &Batch::of(["a"])).expect("a record");
    let epoch = client.describe_topic(&topic).partitions[0].leader_epoch;
    let mut result = |epoch| {
        let mut request = fetch_request(&topic, &[(0, 0)], UNCOMMITTED);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        code(client.call(&request).responses[0].partitions[0].error_code)
    };
    assert_eq!(result(epoch), Ok(()));
    assert_eq!(result(epoch + 1), Err(Code::UnknownLeaderEpoch));
}

#[test]
fn a_new_fetch_session_answers_all_of_its_partitions() {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    client.produce(&topic, 1, &Batch::of(["a"])).expect("a record");
    let answer = client.call(&fetch_request(&topic, &[(0, 0), (1, 0)], UNCOMMITTED).with_session_epoch(0));
    assert_eq!(answer.error_code, 0);
    assert_eq!(answer.responses[0].partitions.len(), 2);
}

#[test]
fn an_unknown_fetch_session_says_so() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let request =
        fetch_request(&topic, &[(0, 0)], UNCOMMITTED).with_session_id(123_456_789).with_session_epoch(5);
    assert_eq!(code(client.call(&request).error_code), Err(Code::FetchSessionIdNotFound));
}

#[test]
fn a_waiting_fetch_does_not_hold_up_other_connections() {
    let broker = Broker::get();
    let mut clients: Vec<Client> = (0..10).map(|_| broker.client()).collect();
    let mut writer = broker.client();
    let topic = writer.topic(1);
    for client in &mut clients {
        client
            .send(&fetch_request(&topic, &[(0, 0)], UNCOMMITTED).with_max_wait_ms(15_000).with_min_bytes(1));
    }
    writer.produce(&topic, 0, &Batch::of(["a"])).expect("a record");
    for client in &mut clients {
        let answer = client.receive::<FetchRequest>();
        assert_eq!(fetched(answer.responses[0].partitions[0].clone()).batches.len(), 1);
    }
}

#[test]
fn a_deleted_topic_ends_a_waiting_fetch() {
    let broker = Broker::get();
    let (mut reader, mut other) = (broker.client(), broker.client());
    let topic = other.topic(1);
    reader.send(&fetch_request(&topic, &[(0, 0)], UNCOMMITTED).with_max_wait_ms(15_000).with_min_bytes(1));
    assert!(reader.is_silent_for(A_WHILE));
    other.delete(&topic).expect("deleted");
    reader.receive::<FetchRequest>();
}
