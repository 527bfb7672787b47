//! A transaction that is decided and whose markers are not written yet.
//!
//! On the development broker alone: it can hold the markers back, while a real Kafka writes them within a millisecond or two.
//! What is checked is what Kafka answers in that time, as far as its protocol says so.

use flechtwerk_conformance::calls::transactions::Init;
use flechtwerk_conformance::*;

/// A producer whose transaction was ended and is held before its markers.
fn held(commit: bool, check: impl FnOnce(&mut Client, &str, &mut Producer)) {
    let broker = Broker::get();
    let Some(dev) = broker.as_dev() else { return };
    let mut client = broker.client();
    let topic = client.topic(2);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["a"]);
    let held = dev.hold_markers(&producer.transactional_id);
    producer.end_once(&mut client, commit).expect("the end");
    check(&mut client, &topic, &mut producer);
    held.release();
    let wanted = if commit { "CompleteCommit" } else { "CompleteAbort" };
    wait_for("the transaction is complete", || {
        client.transaction_state(&producer.transactional_id) == wanted
    });
    assert_eq!(client.values(&topic, 0, COMMITTED).len(), usize::from(commit));
    producer.write(&mut client, &topic, 1, &["next"]);
    producer.commit(&mut client);
}

#[test]
fn the_state_says_what_was_decided() {
    held(true, |client, _, producer| {
        assert_eq!(client.transaction_state(&producer.transactional_id), "PrepareCommit");
    });
    held(false, |client, _, producer| {
        assert_eq!(client.transaction_state(&producer.transactional_id), "PrepareAbort");
    });
}

#[test]
fn records_are_not_stable_before_the_marker() {
    held(true, |client, topic, _| {
        assert_eq!((client.stable_end(topic, 0), client.end(topic, 0)), (0, 1));
        assert!(client.values(topic, 0, COMMITTED).is_empty());
    });
}

#[test]
fn the_next_transaction_has_to_wait() {
    held(true, |client, topic, producer| {
        assert_eq!(producer.add_once(client, topic, &[1]), Err(Code::ConcurrentTransactions));
    });
}

#[test]
fn a_new_producer_of_the_same_name_has_to_wait() {
    held(true, |client, _, producer| {
        let answer = client.init_producer(&producer.transactional_id, Init::default());
        assert_eq!(answer, Err(Code::ConcurrentTransactions));
    });
}

#[test]
fn the_same_end_again_has_to_wait_and_the_other_one_is_refused() {
    held(true, |client, _, producer| {
        assert_eq!(producer.end_once(client, true), Err(Code::ConcurrentTransactions));
        assert_eq!(producer.end_once(client, false), Err(Code::InvalidTxnState));
    });
    held(false, |client, _, producer| {
        assert_eq!(producer.end_once(client, false), Err(Code::ConcurrentTransactions));
        assert_eq!(producer.end_once(client, true), Err(Code::InvalidTxnState));
    });
}

#[test]
fn pending_offsets_stay_pending_before_the_marker() {
    let broker = Broker::get();
    let Some(dev) = broker.as_dev() else { return };
    let mut client = broker.client();
    let (topic, group) = (client.topic(1), unique("group"));
    let producer = client.transactional_producer();
    producer.add_offsets(&mut client, &group).expect("added");
    producer.commit_offset(&mut client, &group, &topic, 0, 5).expect("committed");
    let held = dev.hold_markers(&producer.transactional_id);
    producer.end_once(&mut client, true).expect("the end");
    assert_eq!(client.fetch_offset(&group, &topic, 0, true), Err(Code::UnstableOffsetCommit));
    assert_eq!(client.committed(&group, &topic, 0), -1);
    held.release();
    wait_for("the offset is committed", || client.committed(&group, &topic, 0) == 5);
}
