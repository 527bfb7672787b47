//! What an operator's tools see: transactions and the producers of a partition.

use flechtwerk_conformance::*;
use kafka_protocol::messages::{ListTransactionsRequest, ListTransactionsResponse, ProducerId};

fn list(client: &mut Client, states: &[&str], producers: &[i64]) -> ListTransactionsResponse {
    let request = ListTransactionsRequest::default()
        .with_state_filters(states.iter().map(|state| text(state)).collect())
        .with_producer_id_filters(producers.iter().map(|id| ProducerId(*id)).collect())
        .with_duration_filter(-1);
    let answer = client.call(&request);
    assert_eq!(answer.error_code, 0);
    answer
}

fn state_in(answer: &ListTransactionsResponse, producer: &Producer) -> Option<String> {
    let mut states = answer.transaction_states.iter();
    let found = states.find(|one| one.transactional_id.as_str() == producer.transactional_id)?;
    assert_eq!(found.producer_id.0, producer.id);
    Some(found.transaction_state.as_str().to_owned())
}

#[test]
fn a_transaction_is_described_with_its_state_producer_and_partitions() {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    let mut producer = client.transactional_producer();
    let empty = client.describe_transaction(&producer.transactional_id).expect("a transaction");
    assert_eq!(empty.transaction_state.as_str(), "Empty");
    assert_eq!((empty.producer_id.0, empty.producer_epoch), (producer.id, producer.epoch));
    assert_eq!(empty.transaction_timeout_ms, 60_000);
    assert!(empty.topics.is_empty());

    let before = batch::now();
    producer.write(&mut client, &topic, 1, &["a"]);
    let ongoing = client.describe_transaction(&producer.transactional_id).expect("a transaction");
    assert_eq!(ongoing.transaction_state.as_str(), "Ongoing");
    assert_eq!(ongoing.topics.len(), 1);
    assert_eq!(ongoing.topics[0].topic.as_str(), topic);
    assert_eq!(ongoing.topics[0].partitions, [1]);
    assert!(ongoing.transaction_start_time_ms >= before - 1000, "{}", ongoing.transaction_start_time_ms);

    producer.commit(&mut client);
    let complete = client.describe_transaction(&producer.transactional_id).expect("a transaction");
    assert_eq!(complete.transaction_state.as_str(), "CompleteCommit");
    assert!(complete.topics.is_empty());
}

#[test]
fn an_unknown_transactional_id_is_not_found() {
    let answer = Broker::get().client().describe_transaction(&unique("never-initialised"));
    assert_eq!(answer.expect_err("an error"), Code::TransactionalIdNotFound);
}

#[test]
fn all_transactions_are_listed() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let (idle, mut open) = (client.transactional_producer(), client.transactional_producer());
    open.write(&mut client, &topic, 0, &["a"]);
    let answer = list(&mut client, &[], &[]);
    assert_eq!(state_in(&answer, &idle).as_deref(), Some("Empty"));
    assert_eq!(state_in(&answer, &open).as_deref(), Some("Ongoing"));
}

#[test]
fn transactions_are_listed_by_state_and_by_producer() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let (idle, mut open) = (client.transactional_producer(), client.transactional_producer());
    open.write(&mut client, &topic, 0, &["a"]);
    let ongoing = list(&mut client, &["Ongoing"], &[]);
    assert_eq!(state_in(&ongoing, &idle), None);
    assert_eq!(state_in(&ongoing, &open).as_deref(), Some("Ongoing"));
    let of_idle = list(&mut client, &[], &[idle.id]);
    assert_eq!(of_idle.transaction_states.len(), 1);
    assert_eq!(state_in(&of_idle, &idle).as_deref(), Some("Empty"));
    assert!(list(&mut client, &["Ongoing"], &[idle.id]).transaction_states.is_empty());
}

#[test]
fn an_unknown_state_to_list_by_is_named_in_the_answer() {
    let answer = list(&mut Broker::get().client(), &["NoSuchState"], &[]);
    let unknown: Vec<&str> = answer.unknown_state_filters.iter().map(|state| state.as_str()).collect();
    assert_eq!(unknown, ["NoSuchState"]);
    assert!(answer.transaction_states.is_empty());
}

#[test]
fn the_producers_of_a_partition_are_described_with_their_open_transaction() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let (mut plain, mut open) = (client.idempotent_producer(), client.transactional_producer());
    plain.send(&mut client, &topic, 0, &["a", "b"]).expect("written");
    open.write(&mut client, &topic, 0, &["c", "d", "e"]);
    let of = |client: &mut Client, id: i64| {
        let producers = client.describe_producers(&topic, 0).expect("producers");
        assert_eq!(producers.len(), 2);
        producers.into_iter().find(|one| one.producer_id.0 == id).expect("the producer")
    };
    let state = of(&mut client, plain.id);
    assert_eq!((state.producer_epoch, state.last_sequence, state.current_txn_start_offset), (0, 1, -1));
    let state = of(&mut client, open.id);
    assert_eq!((state.last_sequence, state.current_txn_start_offset), (2, 2));
    assert!((state.last_timestamp - batch::now()).abs() < 60_000);
    open.commit(&mut client);
    assert_eq!(of(&mut client, open.id).current_txn_start_offset, -1);
}

#[test]
fn an_unknown_partition_has_no_producers() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let unknown = Code::UnknownTopicOrPartition;
    assert_eq!(client.describe_producers(&unique("nowhere"), 0).expect_err("an error"), unknown);
    assert_eq!(client.describe_producers(&topic, 4).expect_err("an error"), unknown);
}
