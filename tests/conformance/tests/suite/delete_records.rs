//! Deleting records from the start of a partition.

use flechtwerk_conformance::calls::records::refusal;
use flechtwerk_conformance::*;

fn filled(client: &mut Client, configs: &[(&str, &str)]) -> String {
    let topic = client.topic_with(1, configs);
    client.produce(&topic, 0, &Batch::keyed(&[("a", "0"), ("b", "1"), ("c", "2")])).expect("a batch");
    client.produce(&topic, 0, &Batch::keyed(&[("d", "3")])).expect("a batch");
    topic
}

#[test]
fn records_before_the_offset_are_gone_and_the_end_stays() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client, &[]);
    assert_eq!(client.delete_records(&topic, 0, 3), Ok(3));
    assert_eq!(refusal(client.fetch(&topic, 0, 2, UNCOMMITTED)), Code::OffsetOutOfRange);
    assert_eq!(client.read(&topic, 0, 3, UNCOMMITTED), [(3, "3".to_owned())]);
    assert_eq!(client.end(&topic, 0), 4);
    assert_eq!(client.produce(&topic, 0, &Batch::of(["4"])), Ok(4));
}

#[test]
fn a_start_inside_a_batch_hides_its_first_records() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client, &[]);
    assert_eq!(client.delete_records(&topic, 0, 1), Ok(1));
    assert_eq!(refusal(client.fetch(&topic, 0, 0, UNCOMMITTED)), Code::OffsetOutOfRange);
    let seen: Vec<String> =
        client.read(&topic, 0, 1, UNCOMMITTED).into_iter().map(|(_, value)| value).collect();
    assert_eq!(seen, ["1", "2", "3"]);
}

#[test]
fn minus_one_deletes_all() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client, &[]);
    assert_eq!(client.delete_records(&topic, 0, -1), Ok(4));
    assert_eq!(client.list_offset(&topic, 0, EARLIEST, UNCOMMITTED), Ok(4));
    assert!(client.fetch(&topic, 0, 4, UNCOMMITTED).expect("a fetch").batches.is_empty());
}

#[test]
fn an_offset_behind_the_end_is_refused() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client, &[]);
    assert_eq!(client.delete_records(&topic, 0, 5), Err(Code::OffsetOutOfRange));
    assert_eq!(client.delete_records(&topic, 0, -2), Err(Code::OffsetOutOfRange));
    assert_eq!(client.list_offset(&topic, 0, EARLIEST, UNCOMMITTED), Ok(0));
}

#[test]
fn an_offset_before_the_start_changes_nothing() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client, &[]);
    assert_eq!(client.delete_records(&topic, 0, 3), Ok(3));
    assert_eq!(client.delete_records(&topic, 0, 1), Ok(3));
    assert_eq!(client.list_offset(&topic, 0, EARLIEST, UNCOMMITTED), Ok(3));
}

#[test]
fn a_topic_that_is_compacted_alone_refuses() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client, &[("cleanup.policy", "compact")]);
    assert_eq!(client.delete_records(&topic, 0, 1), Err(Code::PolicyViolation));
    assert_eq!(client.list_offset(&topic, 0, EARLIEST, UNCOMMITTED), Ok(0));
}

#[test]
fn a_topic_that_is_compacted_and_deleted_does_not_refuse() {
    let mut client = Broker::get().client();
    let topic = filled(&mut client, &[("cleanup.policy", "compact,delete")]);
    assert_eq!(client.delete_records(&topic, 0, 3), Ok(3));
}

#[test]
fn an_unknown_topic_or_partition_is_refused() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    assert_eq!(client.delete_records(&unique("nowhere"), 0, 0), Err(Code::UnknownTopicOrPartition));
    assert_eq!(client.delete_records(&topic, 3, 0), Err(Code::UnknownTopicOrPartition));
}

/// Deleting works up to the end, not to the last stable offset.
#[test]
fn records_of_an_open_transaction_can_be_deleted() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["a", "b"]);
    assert_eq!(client.delete_records(&topic, 0, -1), Ok(2));
    producer.commit(&mut client);
    assert_eq!(client.await_stable(&topic, 0), 3);
    assert!(client.read(&topic, 0, 2, COMMITTED).is_empty());
}
