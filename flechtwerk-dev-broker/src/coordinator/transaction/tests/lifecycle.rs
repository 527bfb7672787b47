//! From the first request of a transaction to its last marker.

use super::*;

#[test]
fn a_transaction_opens_with_its_first_partition_and_is_decided_by_its_end() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    assert_eq!(producer, Producer::new(1_000, 0));
    assert_eq!(f.state(), TransactionState::Empty);
    assert_eq!(f.add(producer, 1), ErrorCode::None);
    assert_eq!(f.add(producer, 0), ErrorCode::None);
    assert_eq!(f.add_group(producer, "g"), ErrorCode::None);
    assert_eq!(f.state(), TransactionState::Ongoing);
    assert!(f.markers.is_empty());
    assert_eq!(f.end(producer, true), ErrorCode::None);
    assert_eq!(f.state(), TransactionState::PrepareCommit);
    let markers = f.write_markers();
    let expected = WriteMarkers {
        transactional_id: "x".to_owned(),
        producer,
        commit: true,
        partitions: vec![TopicPartition::new("t", 0), TopicPartition::new("t", 1)],
        groups: vec!["g".to_owned()],
    };
    assert_eq!(markers, [expected]);
    assert_eq!(f.state(), TransactionState::CompleteCommit);
    assert!(f.describe().partitions.is_empty() && f.describe().groups.is_empty());
}

#[test]
fn an_abort_has_abort_markers() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    f.add(producer, 0);
    assert_eq!(f.end(producer, false), ErrorCode::None);
    assert_eq!(f.state(), TransactionState::PrepareAbort);
    let markers = f.write_markers();
    assert!(!markers[0].commit);
    assert_eq!(markers[0].producer, producer);
    assert_eq!(f.state(), TransactionState::CompleteAbort);
}

#[test]
fn a_group_alone_makes_a_transaction() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    assert_eq!(f.add_group(producer, "g"), ErrorCode::None);
    f.end(producer, true);
    let markers = f.write_markers();
    assert!(markers[0].partitions.is_empty());
    assert_eq!(markers[0].groups, ["g"]);
}

#[test]
fn one_transaction_follows_another_with_the_same_epoch() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    for partition in 0..3 {
        assert_eq!(f.add(producer, partition), ErrorCode::None);
        assert_eq!(f.end(producer, partition != 1), ErrorCode::None);
        let markers = f.write_markers();
        assert_eq!(markers[0].partitions, [TopicPartition::new("t", partition)]);
        assert_eq!(markers[0].commit, partition != 1);
    }
}

#[test]
fn adding_what_is_there_already_writes_nothing() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    f.add(producer, 0);
    f.add_group(producer, "g");
    let records = f.journal.len();
    assert_eq!(f.add(producer, 0), ErrorCode::None);
    assert_eq!(f.add_group(producer, "g"), ErrorCode::None);
    assert_eq!(f.journal.len(), records);
}

#[test]
fn while_markers_are_written_everything_else_waits() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    for commit in [true, false] {
        f.add(producer, 0);
        f.end(producer, commit);
        assert_eq!(f.add(producer, 1), ErrorCode::ConcurrentTransactions);
        assert_eq!(f.add_group(producer, "g"), ErrorCode::ConcurrentTransactions);
        assert_eq!(f.init(), Err(ErrorCode::ConcurrentTransactions));
        assert_eq!(f.go_on(producer), Err(ErrorCode::ConcurrentTransactions));
        assert_eq!(f.end(producer, commit), ErrorCode::ConcurrentTransactions);
        assert_eq!(f.end(producer, !commit), ErrorCode::InvalidTxnState);
        let partition = TopicPartition::new("t", 0);
        let code = f.transactions.verify_partition("x", producer, &partition);
        assert_eq!(code, ErrorCode::ConcurrentTransactions);
        let code = f.transactions.verify_group("x", producer, "g");
        assert_eq!(code, ErrorCode::ConcurrentTransactions);
        assert_eq!(f.write_markers().len(), 1, "and nothing of it asks for markers again");
        assert_eq!(f.end(producer, commit), ErrorCode::None, "an end that is asked for again is fine");
        assert_eq!(f.end(producer, !commit), ErrorCode::InvalidTxnState);
        assert!(f.markers.is_empty());
    }
}

#[test]
fn there_is_no_end_without_a_transaction() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    assert_eq!(f.end(producer, true), ErrorCode::InvalidTxnState);
    assert_eq!(f.end(producer, false), ErrorCode::InvalidTxnState);
}

#[test]
fn markers_of_another_transaction_complete_nothing() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    f.add(producer, 0);
    f.end(producer, true);
    let markers = f.markers[0].clone();
    let wrong = [
        WriteMarkers { commit: false, ..markers.clone() },
        WriteMarkers { producer: bumped(producer), ..markers.clone() },
        WriteMarkers { transactional_id: "y".to_owned(), ..markers },
    ];
    let mut out = Effects::new();
    for markers in &wrong {
        f.transactions.markers_written(f.now, markers, &mut out);
    }
    assert!(out.records.is_empty());
    assert_eq!(f.state(), TransactionState::PrepareCommit);
    let written = f.write_markers();
    f.transactions.markers_written(f.now, &written[0], &mut out);
    assert!(out.records.is_empty(), "a second time it changes nothing");
}

#[test]
fn unknown_ids_are_refused() {
    let mut f = Fixture::new();
    let unknown = Producer::new(1_000, 0);
    assert_eq!(f.add(unknown, 0), ErrorCode::InvalidProducerIdMapping);
    assert_eq!(f.add_group(unknown, "g"), ErrorCode::InvalidProducerIdMapping);
    assert_eq!(f.end(unknown, true), ErrorCode::InvalidProducerIdMapping);
    let partition = TopicPartition::new("t", 0);
    let code = f.transactions.verify_partition("x", unknown, &partition);
    assert_eq!(code, ErrorCode::InvalidProducerIdMapping);
    let producer = f.init().unwrap();
    let other = Producer::new(producer.id + 1, producer.epoch);
    assert_eq!(f.add(other, 0), ErrorCode::InvalidProducerIdMapping);
    assert_eq!(f.add_group(other, "g"), ErrorCode::InvalidProducerIdMapping);
    assert_eq!(f.end(other, true), ErrorCode::InvalidProducerIdMapping);
    assert_eq!(f.transactions.verify_group("x", other, "g"), ErrorCode::InvalidProducerIdMapping);
}

#[test]
fn an_empty_transactional_id_is_invalid() {
    let mut f = Fixture::new();
    assert_eq!(f.request(&init("", NONE)), Err(ErrorCode::InvalidRequest));
    let (producer, mut out) = (Producer::new(1, 0), Effects::new());
    let t = &mut f.transactions;
    assert_eq!(t.add_partitions(f.now, "", producer, &[], &mut out), ErrorCode::InvalidRequest);
    assert_eq!(t.add_offsets(f.now, "", producer, "g", &mut out), ErrorCode::InvalidRequest);
    assert_eq!(t.end(f.now, "", producer, true, &mut out), ErrorCode::InvalidRequest);
    assert_eq!(t.verify_group("", producer, "g"), ErrorCode::InvalidRequest);
    assert_eq!(t.describe(""), Err(ErrorCode::InvalidRequest));
}

#[test]
fn timeouts_outside_the_limits_are_invalid() {
    let mut f = Fixture::new();
    for timeout_ms in [i32::MIN, -1, 0, 900_001, i32::MAX] {
        let request = InitRequest { timeout_ms, ..init("x", NONE) };
        assert_eq!(f.request(&request), Err(ErrorCode::InvalidTransactionTimeout), "{timeout_ms}");
    }
    for timeout_ms in [1, 900_000] {
        assert!(f.request(&InitRequest { timeout_ms, ..init("x", NONE) }).is_ok());
        assert_eq!(f.describe().timeout_ms, timeout_ms);
    }
}

#[test]
fn what_is_in_the_transaction_may_be_written() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    let partition = TopicPartition::new("t", 0);
    assert_eq!(f.transactions.verify_partition("x", producer, &partition), ErrorCode::InvalidTxnState);
    assert_eq!(f.transactions.verify_group("x", producer, "g"), ErrorCode::InvalidTxnState);
    f.add(producer, 0);
    assert_eq!(f.transactions.verify_partition("x", producer, &partition), ErrorCode::None);
    assert_eq!(f.transactions.verify_group("x", producer, "g"), ErrorCode::InvalidTxnState);
    f.add_group(producer, "g");
    assert_eq!(f.transactions.verify_group("x", producer, "g"), ErrorCode::None);
    let other = TopicPartition::new("t", 1);
    assert_eq!(f.transactions.verify_partition("x", producer, &other), ErrorCode::InvalidTxnState);
    let newer = bumped(producer);
    assert_eq!(f.transactions.verify_partition("x", newer, &partition), ErrorCode::InvalidProducerEpoch);
    assert_eq!(f.transactions.verify_group("x", newer, "g"), ErrorCode::InvalidProducerEpoch);
    f.end(producer, true);
    f.write_markers();
    assert_eq!(f.transactions.verify_partition("x", producer, &partition), ErrorCode::InvalidTxnState);
}

#[test]
fn a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    f.add(producer, 0);
    f.pass(30_000);
    f.add(producer, 1);
    f.pass(29_999);
    assert_eq!(f.state(), TransactionState::Ongoing, "its time began with its first partition");
    f.pass(1);
    assert_eq!(f.state(), TransactionState::PrepareAbort);
    assert_eq!(f.end(producer, true), ErrorCode::ProducerFenced);
    let markers = f.write_markers();
    assert_eq!(markers.len(), 1);
    assert_eq!((markers[0].producer, markers[0].commit), (bumped(producer), false));
    assert_eq!(f.state(), TransactionState::CompleteAbort);
    assert_eq!(f.end(producer, true), ErrorCode::ProducerFenced);
    assert_eq!(f.add(producer, 0), ErrorCode::ProducerFenced);
    assert_eq!(f.add_group(producer, "g"), ErrorCode::ProducerFenced);
    assert_eq!(f.go_on(producer), Ok(bumped(producer)), "it may go on, but not with that transaction");
    let next = f.init().unwrap();
    assert_eq!(next, Producer::new(producer.id, producer.epoch + 2));
    assert_eq!(f.add(next, 0), ErrorCode::None);
}

#[test]
fn a_decided_transaction_does_not_time_out() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    f.add(producer, 0);
    f.end(producer, true);
    assert_eq!(f.transactions.next_deadline(), None);
    f.pass(1_000_000);
    assert_eq!(f.state(), TransactionState::PrepareCommit);
    assert_eq!(f.write_markers().len(), 1);
}

#[test]
fn the_next_deadline_is_when_the_first_transaction_times_out() {
    let mut f = Fixture::new();
    assert_eq!(f.transactions.next_deadline(), None);
    let producer = f.init().unwrap();
    assert_eq!(f.transactions.next_deadline(), None);
    f.add(producer, 0);
    let at = f.now.since_start.after(Millis(60_000));
    assert_eq!(f.transactions.next_deadline(), Some(at));
    f.pass(60_000);
    assert_eq!(f.transactions.next_deadline(), None);
}

#[test]
fn an_id_without_a_transaction_is_forgotten_after_long_if_told_so() {
    let expiration = Some(Millis(100_000));
    let mut f = Fixture::with(TransactionSettings { id_expiration: expiration, ..Default::default() });
    let producer = f.init().unwrap();
    f.add(producer, 0);
    f.pass(50_000);
    f.end(producer, true);
    f.pass(200_000);
    assert_eq!(f.state(), TransactionState::PrepareCommit);
    f.write_markers();
    f.pass(99_999);
    assert_eq!(f.state(), TransactionState::CompleteCommit);
    f.pass(1);
    assert_eq!(f.transactions.describe("x"), Err(ErrorCode::TransactionalIdNotFound));
    assert_eq!(f.end(producer, true), ErrorCode::InvalidProducerIdMapping);
    // The producer goes on with an id that is new.
    let next = f.go_on(producer).unwrap();
    assert_eq!((next.id, next.epoch), (producer.id + 1, 0));
}
