//! What a producer hears whose place another one has taken, and one whose transaction took too long.

use flechtwerk_conformance::calls::transactions::{Init, settled};
use flechtwerk_conformance::*;

/// A producer in a transaction with one record, and a second one of the same name, which has ended that transaction.
fn fenced() -> (Client, String, Producer, Producer) {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    let mut old = client.transactional_producer();
    old.write(&mut client, &topic, 0, &["old"]);
    let new = client.producer_named(&old.transactional_id);
    (client, topic, old, new)
}

#[test]
fn a_new_producer_aborts_the_transaction_of_the_old_one() {
    let (mut client, topic, old, new) = fenced();
    assert_eq!(new.id, old.id);
    assert!(new.epoch > old.epoch);
    assert_eq!(client.await_stable(&topic, 0), 2);
    assert!(client.values(&topic, 0, COMMITTED).is_empty());
    let marker = client.fetch(&topic, 0, 1, UNCOMMITTED).expect("a fetch").batches.remove(0);
    assert!(marker.is_abort());
}

/// Its own transaction is to be aborted first.
#[test]
fn a_new_producer_is_asked_to_wait_while_the_old_transaction_ends() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let mut old = client.transactional_producer();
    old.write(&mut client, &topic, 0, &["old"]);
    assert_eq!(
        client.init_producer(&old.transactional_id, Init::default()),
        Err(Code::ConcurrentTransactions)
    );
    let (id, epoch) = client.init_when_ready(&old.transactional_id, Init::default()).expect("a producer id");
    // One epoch fences the old producer, the next one is the new producer's.
    assert_eq!((id, epoch), (old.id, 2));
}

/// Its transaction is aborted under the next epoch, which then is its own.
#[test]
fn a_producer_that_starts_again_with_its_identity_in_the_middle_of_a_transaction_goes_on() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["gone"]);
    let init = Init { had: Some((producer.id, producer.epoch)), ..Init::default() };
    assert_eq!(client.init_producer(&producer.transactional_id, init), Err(Code::ConcurrentTransactions));
    assert_eq!(client.init_when_ready(&producer.transactional_id, init), Ok((producer.id, 1)));
    assert_eq!(client.init_when_ready(&producer.transactional_id, init), Ok((producer.id, 1)), "asked again");
    let mut again = Producer::with_identity(&producer.transactional_id, producer.id, 1);
    again.write(&mut client, &topic, 0, &["seen"]);
    again.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["seen"]);
}

#[test]
fn a_fenced_producer_can_not_produce() {
    let (mut client, topic, mut old, _) = fenced();
    let end = client.await_stable(&topic, 0);
    assert_eq!(old.send(&mut client, &topic, 0, &["late"]), Err(Code::InvalidProducerEpoch));
    assert_eq!(client.end(&topic, 0), end);
}

#[test]
fn a_fenced_producer_can_not_add_partitions() {
    let (mut client, topic, old, _) = fenced();
    assert_eq!(old.add(&mut client, &topic, &[1]), Err(Code::InvalidProducerEpoch));
}

#[test]
fn a_fenced_producer_can_not_add_offsets() {
    let (mut client, _, old, _) = fenced();
    assert_eq!(old.add_offsets(&mut client, &unique("group")), Err(Code::InvalidProducerEpoch));
}

#[test]
fn a_fenced_producer_can_not_commit_offsets() {
    let mut client = Broker::get().client();
    let (topic, group) = (client.topic(1), unique("group"));
    let old = client.transactional_producer();
    old.add_offsets(&mut client, &group).expect("added");
    assert_eq!(old.commit_offset(&mut client, &group, &topic, 0, 5), Ok(()));
    client.producer_named(&old.transactional_id);
    assert_eq!(old.commit_offset(&mut client, &group, &topic, 0, 6), Err(Code::InvalidProducerEpoch));
    assert_eq!(client.committed(&group, &topic, 0), -1);
}

#[test]
fn a_fenced_producer_can_not_end_its_transaction() {
    let (mut client, topic, old, _) = fenced();
    for commit in [true, false] {
        let answer = settled(|| old.end_once(&mut client, commit));
        assert_eq!(answer, Err(Code::InvalidProducerEpoch), "commit: {commit}");
    }
    assert!(client.values(&topic, 0, COMMITTED).is_empty());
}

#[test]
fn a_fenced_producer_does_not_disturb_the_transaction_of_the_new_one() {
    let (mut client, topic, mut old, mut new) = fenced();
    new.write(&mut client, &topic, 0, &["new"]);
    assert!(old.send(&mut client, &topic, 0, &["late"]).is_err());
    assert!(old.end_once(&mut client, false).is_err());
    new.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["new"]);
}

#[test]
fn an_epoch_that_was_not_given_yet_is_refused() {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["a"]);
    let mut ahead = producer.clone();
    ahead.epoch += 1;
    assert_eq!(ahead.add_once(&mut client, &topic, &[0]), Err(Code::InvalidProducerEpoch));
    assert_eq!(ahead.end_once(&mut client, true), Err(Code::InvalidProducerEpoch));
    producer.commit(&mut client);
}

/// A producer whose transaction the broker has aborted because it took too long.
fn timed_out() -> (Client, String, Producer) {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    let init = Init { timeout_ms: 1_000, ..Init::default() };
    let mut producer = client.producer_with(&unique("tx"), init);
    producer.write(&mut client, &topic, 0, &["slow"]);
    wait_for("the broker aborts the transaction", || {
        client.transaction_state(&producer.transactional_id) == "CompleteAbort"
    });
    (client, topic, producer)
}

#[test]
fn a_transaction_that_takes_too_long_is_aborted() {
    let (mut client, topic, producer) = timed_out();
    assert_eq!(client.await_stable(&topic, 0), 2);
    assert!(client.values(&topic, 0, COMMITTED).is_empty());
    let state = client.describe_transaction(&producer.transactional_id).expect("a transaction");
    assert_eq!((state.producer_id.0, state.producer_epoch), (producer.id, producer.epoch + 1));
}

#[test]
fn a_producer_whose_transaction_took_too_long_is_fenced_from_all_it_can_do() {
    let (mut client, topic, mut producer) = timed_out();
    let group = unique("group");
    let fenced = Err(Code::InvalidProducerEpoch);
    assert_eq!(producer.end_once(&mut client, true), fenced);
    assert_eq!(producer.end_once(&mut client, false), fenced);
    assert_eq!(producer.add(&mut client, &topic, &[0]), fenced);
    assert_eq!(producer.add_offsets(&mut client, &group), fenced);
    assert_eq!(producer.send(&mut client, &topic, 0, &["late"]).map(|_| ()), fenced);
    assert_eq!(client.end(&topic, 0), 2);
}

#[test]
fn a_producer_whose_transaction_took_too_long_comes_back_with_its_identity() {
    let (mut client, topic, producer) = timed_out();
    let init = Init { had: Some((producer.id, producer.epoch)), ..Init::default() };
    let (id, epoch) = client.init_when_ready(&producer.transactional_id, init).expect("a producer id");
    assert_eq!((id, epoch), (producer.id, producer.epoch + 1));
    let mut again = producer.clone();
    again.epoch = epoch;
    again.add(&mut client, &topic, &[1]).expect("added");
    let batch = Batch::of(["again"]).by(id, epoch, 0).transactional();
    let answer = client.produce_as(&topic, 1, batch.encode(), Some(&again.transactional_id));
    assert_eq!(code(answer.error_code), Ok(()));
    again.commit(&mut client);
    assert_eq!(client.values(&topic, 1, COMMITTED), ["again"]);
}

#[test]
fn a_new_producer_begins_after_a_transaction_that_took_too_long() {
    let (mut client, topic, producer) = timed_out();
    let mut new = client.producer_named(&producer.transactional_id);
    assert_eq!((new.id, new.epoch), (producer.id, producer.epoch + 2));
    new.write(&mut client, &topic, 0, &["new"]);
    new.commit(&mut client);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["new"]);
}
