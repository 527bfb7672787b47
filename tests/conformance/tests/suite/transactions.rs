//! The life of a transaction: its producer's identity, its parts, its end.

use flechtwerk_conformance::calls::transactions::{Init, settled};
use flechtwerk_conformance::*;
use kafka_protocol::messages::AddPartitionsToTxnRequest;
use kafka_protocol::messages::ProducerId;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;

fn begun() -> (Client, String, Producer) {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    let producer = client.transactional_producer();
    (client, topic, producer)
}

#[test]
fn a_transactional_id_keeps_its_producer_id_and_each_start_has_the_next_epoch() {
    let mut client = Broker::get().client();
    let first = client.transactional_producer();
    assert_eq!(first.epoch, 0);
    for epoch in 1..4 {
        let next = client.producer_named(&first.transactional_id);
        assert_eq!((next.id, next.epoch), (first.id, epoch));
    }
    assert_ne!(client.transactional_producer().id, first.id);
}

#[test]
fn a_producer_with_its_current_identity_gets_the_next_epoch() {
    let (mut client, _, producer) = begun();
    let init = Init { had: Some((producer.id, producer.epoch)), ..Init::default() };
    assert_eq!(client.init_when_ready(&producer.transactional_id, init), Ok((producer.id, 1)));
}

/// The answer may have been lost, so that the same question has the same answer.
#[test]
fn a_producer_that_asks_again_with_its_former_identity_gets_the_same_epoch() {
    let (mut client, _, producer) = begun();
    let init = Init { had: Some((producer.id, producer.epoch)), ..Init::default() };
    for _ in 0..3 {
        assert_eq!(client.init_when_ready(&producer.transactional_id, init), Ok((producer.id, 1)));
    }
}

#[test]
fn a_producer_with_an_older_identity_is_fenced() {
    let (mut client, _, producer) = begun();
    client.producer_named(&producer.transactional_id);
    client.producer_named(&producer.transactional_id);
    let init = Init { had: Some((producer.id, producer.epoch)), ..Init::default() };
    assert_eq!(client.init_when_ready(&producer.transactional_id, init), Err(Code::ProducerFenced));
    let init = Init { had: Some((producer.id + 1_000_000, 2)), ..Init::default() };
    assert_eq!(client.init_when_ready(&producer.transactional_id, init), Err(Code::ProducerFenced));
}

#[test]
fn a_time_out_above_the_brokers_limit_or_below_1_is_refused() {
    let mut client = Broker::get().client();
    for timeout_ms in [900_001, i32::MAX, 0, -1] {
        let answer = client.init_producer(&unique("tx"), Init { timeout_ms, ..Init::default() });
        assert_eq!(answer, Err(Code::InvalidTransactionTimeout), "{timeout_ms}");
    }
    let limit = Init { timeout_ms: 900_000, ..Init::default() };
    assert!(client.init_when_ready(&unique("tx"), limit).is_ok());
}

#[test]
fn an_identity_with_an_id_or_an_epoch_alone_is_refused() {
    let mut client = Broker::get().client();
    for had in [(5, -1), (-1, 5)] {
        let init = Init { had: Some(had), ..Init::default() };
        assert_eq!(client.init_producer(&unique("tx"), init), Err(Code::InvalidRequest), "{had:?}");
    }
}

#[test]
fn committed_records_are_there_and_the_marker_takes_an_offset() {
    let (mut client, topic, mut producer) = begun();
    assert_eq!(producer.write(&mut client, &topic, 0, &["a", "b"]), 0);
    producer.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["a", "b"]);
    assert_eq!(client.end(&topic, 0), 3);
    assert_eq!(client.produce(&topic, 0, &Batch::of(["c"])), Ok(3));
}

#[test]
fn aborted_records_are_seen_by_nobody_who_reads_what_is_committed() {
    let (mut client, topic, mut producer) = begun();
    producer.write(&mut client, &topic, 0, &["a", "b"]);
    producer.abort(&mut client);
    assert!(client.values(&topic, 0, COMMITTED).is_empty());
    assert_eq!(client.values(&topic, 0, UNCOMMITTED), ["a", "b"]);
    assert_eq!(client.end(&topic, 0), 3);
}

#[test]
fn markers_are_control_batches_of_their_producer() {
    let (mut client, topic, mut producer) = begun();
    producer.write(&mut client, &topic, 0, &["a"]);
    producer.commit(&mut client);
    producer.write(&mut client, &topic, 0, &["b"]);
    producer.abort(&mut client);
    let batches = client.fetch(&topic, 0, 0, UNCOMMITTED).expect("a fetch").batches;
    assert_eq!(batches.len(), 4);
    for (batch, commit) in [(&batches[1], true), (&batches[3], false)] {
        assert!(batch.is_control() && batch.is_transactional());
        assert_eq!((batch.is_commit(), batch.is_abort()), (commit, !commit));
        assert_eq!((batch.producer_id, batch.producer_epoch), (producer.id, producer.epoch));
        assert_eq!(batch.base_sequence, -1);
        assert!(batch.crc_is_right);
        let key = [0, 0, 0, u8::from(commit)];
        assert_eq!(batch.records[0].1.key.as_deref(), Some(&key[..]));
        // Its version and the coordinator's epoch.
        let value = batch.records[0].1.value.as_deref().expect("a value");
        assert!(value.len() >= 6 && value[..2] == [0, 0], "{value:?}");
    }
}

#[test]
fn each_partition_of_a_transaction_gets_a_marker_and_no_other() {
    let mut client = Broker::get().client();
    let topic = client.topic(3);
    let mut producer = client.transactional_producer();
    producer.add(&mut client, &topic, &[0, 1]).expect("added");
    producer.send(&mut client, &topic, 0, &["a"]).expect("written");
    producer.commit(&mut client);
    assert_eq!([0, 1, 2].map(|partition| client.end(&topic, partition)), [2, 1, 0]);
}

#[test]
fn sequence_numbers_go_on_from_one_transaction_to_the_next() {
    let (mut client, topic, mut producer) = begun();
    for _ in 0..3 {
        producer.write(&mut client, &topic, 0, &["a", "b"]);
        producer.commit(&mut client);
    }
    producer.add(&mut client, &topic, &[0]).expect("added");
    let gap = Batch::of(["x"]).by(producer.id, producer.epoch, 9).transactional();
    let answer = client.produce_as(&topic, 0, gap.encode(), Some(&producer.transactional_id));
    assert_eq!(code(answer.error_code), Err(Code::OutOfOrderSequenceNumber));
}

#[test]
fn a_duplicate_within_a_transaction_is_answered_with_its_first_offset() {
    let (mut client, topic, mut producer) = begun();
    producer.add(&mut client, &topic, &[0]).expect("added");
    let batch = producer.batch(&topic, 0, &["a", "b"]).encode();
    assert_eq!(producer.send(&mut client, &topic, 0, &["a", "b"]), Ok(0));
    let answer = client.produce_as(&topic, 0, batch, Some(&producer.transactional_id));
    assert_eq!((answer.error_code, answer.base_offset), (0, 0));
    producer.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["a", "b"]);
}

#[test]
fn the_same_end_twice_is_no_error() {
    let (mut client, topic, mut producer) = begun();
    for commit in [true, false] {
        producer.write(&mut client, &topic, 0, &["a"]);
        producer.end(&mut client, commit).expect("the end");
        assert_eq!(producer.end_once(&mut client, commit), Ok(()), "commit: {commit}");
    }
    assert_eq!(client.end(&topic, 0), 4, "no further markers");
}

#[test]
fn the_other_end_afterwards_is_refused() {
    let (mut client, topic, mut producer) = begun();
    for commit in [true, false] {
        producer.write(&mut client, &topic, 0, &["a"]);
        producer.end(&mut client, commit).expect("the end");
        assert_eq!(producer.end_once(&mut client, !commit), Err(Code::InvalidTxnState), "commit: {commit}");
    }
}

#[test]
fn a_transaction_that_never_began_can_not_end() {
    let (mut client, _, producer) = begun();
    for commit in [true, false] {
        assert_eq!(producer.end_once(&mut client, commit), Err(Code::InvalidTxnState), "commit: {commit}");
    }
}

#[test]
fn an_unknown_transactional_id_or_another_ones_producer_id_is_refused() {
    let (mut client, topic, producer) = begun();
    let mut stranger = producer.clone();
    stranger.transactional_id = unique("never-initialised");
    let mut mixed = producer.clone();
    mixed.id += 1_000_000;
    for wrong in [stranger, mixed] {
        let refused = Err(Code::InvalidProducerIdMapping);
        assert_eq!(wrong.add_once(&mut client, &topic, &[0]), refused);
        assert_eq!(wrong.add_offsets(&mut client, "group"), refused);
        assert_eq!(wrong.end_once(&mut client, true), refused);
    }
}

#[test]
fn an_unknown_partition_keeps_the_others_out_of_the_transaction() {
    let (mut client, topic, producer) = begun();
    let topics = [(topic.clone(), vec![0, 7]), (unique("nowhere"), vec![0])].map(|(name, partitions)| {
        AddPartitionsToTxnTopic::default().with_name(text(&name).into()).with_partitions(partitions)
    });
    let request = AddPartitionsToTxnRequest::default()
        .with_v3_and_below_transactional_id(text(&producer.transactional_id).into())
        .with_v3_and_below_producer_id(ProducerId(producer.id))
        .with_v3_and_below_producer_epoch(producer.epoch)
        .with_v3_and_below_topics(topics.to_vec());
    let answer = client.call(&request);
    let mut results = Vec::new();
    for one in &answer.results_by_topic_v3_and_below {
        for result in &one.results_by_partition {
            let known = one.name.as_str() == topic && result.partition_index == 0;
            results.push((known, code(result.partition_error_code)));
        }
    }
    results.sort_by_key(|(known, _)| *known);
    let unknown = (false, Err(Code::UnknownTopicOrPartition));
    assert_eq!(results, [unknown, unknown, (true, Err(Code::OperationNotAttempted))]);
    assert_eq!(client.transaction_state(&producer.transactional_id), "Empty");
}

#[test]
fn a_partition_can_be_added_twice() {
    let (mut client, topic, mut producer) = begun();
    producer.add(&mut client, &topic, &[0]).expect("added");
    producer.write(&mut client, &topic, 0, &["a"]);
    producer.commit(&mut client);
    assert_eq!(client.end(&topic, 0), 2, "one marker");
}

#[test]
fn records_for_a_partition_outside_the_transaction_are_refused() {
    let (mut client, topic, mut producer) = begun();
    assert_eq!(producer.send(&mut client, &topic, 0, &["before"]), Err(Code::InvalidTxnState));
    producer.write(&mut client, &topic, 0, &["a"]);
    assert_eq!(producer.send(&mut client, &topic, 1, &["another"]), Err(Code::InvalidTxnState));
    producer.commit(&mut client);
    assert_eq!(producer.send(&mut client, &topic, 0, &["after"]), Err(Code::InvalidTxnState));
    assert_eq!([client.end(&topic, 0), client.end(&topic, 1)], [2, 0]);
}

#[test]
fn a_plain_batch_of_a_producer_in_a_transaction_is_refused() {
    let (mut client, topic, mut producer) = begun();
    producer.write(&mut client, &topic, 0, &["a"]);
    let plain = Batch::of(["b"]).by(producer.id, producer.epoch, 1);
    assert_eq!(client.produce(&topic, 0, &plain), Err(Code::InvalidTxnState));
    producer.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["a"]);
}

#[test]
fn a_transactional_batch_without_a_transactional_id_is_refused() {
    let (mut client, topic, producer) = begun();
    producer.add(&mut client, &topic, &[0]).expect("added");
    let batch = producer.batch(&topic, 0, &["a"]).encode();
    let answer = client.produce_as(&topic, 0, batch, None);
    assert_eq!(code(answer.error_code), Err(Code::TransactionalIdAuthorizationFailed));
}

/// While the markers of one transaction are written, the next can't begin: a broker says so, or has finished.
#[test]
fn a_transaction_follows_another_at_once_or_is_asked_to_wait() {
    let (mut client, topic, mut producer) = begun();
    for number in 0..20 {
        producer.write(&mut client, &topic, 0, &[&number.to_string()]);
        producer.end_once(&mut client, number % 2 == 0).expect("the end");
        let answer = producer.add_once(&mut client, &topic, &[0]);
        assert!(matches!(answer, Ok(()) | Err(Code::ConcurrentTransactions)), "{answer:?}");
    }
    // Whether or not the last one has begun: it is ended as its predecessor was.
    settled(|| producer.end_once(&mut client, false)).expect("the last end");
    client.await_stable(&topic, 0);
    let wanted: Vec<String> = (0..20).step_by(2).map(|number| number.to_string()).collect();
    assert_eq!(client.values(&topic, 0, COMMITTED), wanted);
}

#[test]
fn a_topic_that_is_deleted_does_not_hold_up_the_end_of_a_transaction() {
    let (mut client, topic, mut producer) = begun();
    let gone = client.topic(1);
    producer.write(&mut client, &gone, 0, &["a"]);
    producer.write(&mut client, &topic, 0, &["b"]);
    client.delete(&gone).expect("deleted");
    wait_for("the topic is gone", || client.describe_topic(&gone).error_code != 0);
    producer.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["b"]);
}

#[test]
fn an_aborted_transaction_does_not_touch_what_others_have_written() {
    let (mut client, topic, mut producer) = begun();
    producer.write(&mut client, &topic, 0, &["gone"]);
    client.produce(&topic, 0, &Batch::of(["plain"])).expect("a batch");
    producer.abort(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["plain"]);
}
