//! Epochs: who fences whom (KIP-98), and who may go on (KIP-360).

use super::*;

#[test]
fn each_takeover_bumps_the_epoch_and_fences_the_one_before() {
    let mut f = Fixture::new();
    let first = f.init().unwrap();
    let second = f.init().unwrap();
    assert_eq!(second, bumped(first));
    assert_eq!(f.add(first, 0), ErrorCode::ProducerFenced);
    assert_eq!(f.add_group(first, "g"), ErrorCode::ProducerFenced);
    assert_eq!(f.end(first, true), ErrorCode::ProducerFenced);
    assert_eq!(f.transactions.verify_group("x", first, "g"), ErrorCode::InvalidProducerEpoch);
    assert_eq!(f.add(second, 0), ErrorCode::None);
    assert_eq!(f.end(bumped(second), true), ErrorCode::ProducerFenced, "nor may one come from the future");
}

#[test]
fn a_takeover_aborts_the_open_transaction_first() {
    let mut f = Fixture::new();
    let first = f.init().unwrap();
    f.add(first, 0);
    assert_eq!(f.init(), Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(f.state(), TransactionState::PrepareAbort);
    assert_eq!(f.end(first, true), ErrorCode::ProducerFenced, "the zombie can do nothing from here on");
    assert_eq!(f.init(), Err(ErrorCode::ConcurrentTransactions));
    let markers = f.write_markers();
    assert_eq!(markers.len(), 1);
    assert_eq!((markers[0].producer, markers[0].commit), (bumped(first), false));
    let second = f.init().unwrap();
    assert_eq!(second, bumped(bumped(first)), "the epoch of the marker is given to nobody");
    assert_eq!(f.add(first, 0), ErrorCode::ProducerFenced);
    assert_eq!(f.add(bumped(first), 0), ErrorCode::ProducerFenced);
}

#[test]
fn ids_are_for_themselves() {
    let mut f = Fixture::new();
    let x = f.init().unwrap();
    let y = f.request(&init("y", NONE)).unwrap();
    assert_ne!(x.id, y.id);
    assert_eq!((x.epoch, y.epoch), (0, 0));
    assert_eq!(f.add(x, 0), ErrorCode::None);
    assert_eq!(f.add(y, 0), ErrorCode::InvalidProducerIdMapping);
}

#[test]
fn a_producer_without_transactions_gets_an_id_of_its_own() {
    let mut f = Fixture::new();
    let request = |current| InitRequest { transactional_id: None, timeout_ms: i32::MAX, current };
    let first = f.request(&request(NONE)).unwrap();
    let second = f.request(&request(NONE)).unwrap();
    assert_eq!((first, second), (Producer::new(1_000, 0), Producer::new(1_001, 0)));
    // One that lost its state on the broker starts again with another id.
    assert_eq!(f.request(&request(first)), Ok(Producer::new(1_002, 0)));
    assert_eq!(f.init().unwrap().id, 1_003);
}

#[test]
fn half_a_producer_is_invalid() {
    let mut f = Fixture::new();
    assert_eq!(f.go_on(Producer::new(1_000, -1)), Err(ErrorCode::InvalidRequest));
    assert_eq!(f.go_on(Producer::new(-1, 0)), Err(ErrorCode::InvalidRequest));
}

#[test]
fn a_producer_goes_on_with_the_next_epoch() {
    let mut f = Fixture::new();
    let first = f.init().unwrap();
    let second = f.go_on(first).unwrap();
    assert_eq!(second, bumped(first));
    f.add(second, 0);
    f.end(second, false);
    f.write_markers();
    assert_eq!(f.go_on(second), Ok(bumped(second)));
}

#[test]
fn going_on_twice_with_the_same_epoch_is_a_retry() {
    let mut f = Fixture::new();
    let first = f.init().unwrap();
    let second = f.go_on(first).unwrap();
    assert_eq!(f.go_on(first), Ok(second));
    assert_eq!(f.go_on(first), Ok(second));
    assert_eq!(f.go_on(second), Ok(bumped(second)));
    assert_eq!(f.go_on(first), Err(ErrorCode::ProducerFenced));
}

#[test]
fn a_fenced_producer_cannot_go_on() {
    let mut f = Fixture::new();
    let first = f.init().unwrap();
    let second = f.init().unwrap();
    assert_eq!(f.go_on(first), Err(ErrorCode::ProducerFenced), "it is no retry, for another took over");
    assert_eq!(f.go_on(Producer::new(first.id + 7, 0)), Err(ErrorCode::ProducerFenced));
    assert_eq!(f.go_on(bumped(second)), Err(ErrorCode::ProducerFenced));
    assert_eq!(f.end(second, true), ErrorCode::InvalidTxnState, "the one that took over is not touched");
}

#[test]
fn the_code_for_older_versions_is_an_invalid_epoch() {
    let old = ErrorCode::ProducerFenced.without_producer_fenced();
    assert_eq!((old, old.code()), (ErrorCode::InvalidProducerEpoch, 47));
    let other = ErrorCode::ConcurrentTransactions.without_producer_fenced();
    assert_eq!((other, other.code()), (ErrorCode::ConcurrentTransactions, 51));
}

#[test]
fn a_producer_that_the_coordinator_does_not_know_goes_on_as_a_new_one() {
    let mut f = Fixture::new();
    assert_eq!(f.go_on(Producer::new(5, 3)), Ok(Producer::new(1_000, 0)));
}

#[test]
fn going_on_aborts_a_transaction_that_is_still_open() {
    let mut f = Fixture::new();
    let first = f.init().unwrap();
    f.add(first, 0);
    assert_eq!(f.go_on(first), Err(ErrorCode::ConcurrentTransactions));
    let markers = f.write_markers();
    assert_eq!((markers[0].producer, markers[0].commit), (bumped(first), false));
    assert_eq!(f.go_on(first), Ok(bumped(first)), "it has the epoch of its own fencing");
    assert_eq!(f.init(), Ok(bumped(bumped(first))));
}

#[test]
fn an_epoch_that_fenced_is_given_to_the_fenced_alone() {
    let mut f = Fixture::new();
    let first = f.init().unwrap();
    let second = f.go_on(first).unwrap();
    f.add(second, 0);
    assert_eq!(f.init(), Err(ErrorCode::ConcurrentTransactions));
    f.write_markers();
    assert_eq!(f.go_on(first), Err(ErrorCode::ProducerFenced), "it would be a retry, but for the fencing");
    assert_eq!(f.go_on(second), Ok(bumped(second)), "nobody has taken over yet");
    assert_eq!(f.go_on(second), Ok(bumped(second)));
    assert_eq!(f.init(), Ok(bumped(bumped(second))));
    assert_eq!(f.go_on(second), Err(ErrorCode::ProducerFenced), "now somebody has");
}

/// A coordinator whose epochs for `x` are used up, and the last producer it gave out.
fn exhausted() -> (Fixture, Producer) {
    let mut f = Fixture::new();
    let mut last = f.init().unwrap();
    while last.epoch < i16::MAX - 1 {
        last = f.init().unwrap();
    }
    f.journal.clear();
    (f, last)
}

#[test]
fn when_the_epochs_are_used_up_there_is_a_new_producer_id() {
    let (mut f, last) = exhausted();
    assert_eq!(last, Producer::new(1_000, i16::MAX - 1));
    assert_eq!(f.add(last, 0), ErrorCode::None, "the last epoch is as good as any");
    assert_eq!(f.end(last, true), ErrorCode::None);
    f.write_markers();
    let next = f.init().unwrap();
    assert_eq!(next, Producer::new(1_001, 0));
    assert_eq!(f.end(last, true), ErrorCode::InvalidProducerIdMapping);
    assert_eq!(f.go_on(last), Err(ErrorCode::ProducerFenced), "another took over");
}

#[test]
fn the_last_epoch_can_still_be_fenced() {
    let (mut f, last) = exhausted();
    f.add(last, 0);
    assert_eq!(f.init(), Err(ErrorCode::ConcurrentTransactions));
    let markers = f.write_markers();
    assert_eq!(markers[0].producer, Producer::new(last.id, i16::MAX));
    let next = Producer::new(1_001, 0);
    assert_eq!(f.go_on(last), Ok(next), "the last epoch of all is given to nobody");
    assert_eq!(f.go_on(last), Ok(next));
    assert_eq!(f.init(), Ok(bumped(next)));
}

#[test]
fn a_producer_goes_on_with_a_new_id_and_may_ask_again() {
    let (mut f, last) = exhausted();
    let next = f.go_on(last).unwrap();
    assert_eq!(next, Producer::new(1_001, 0));
    assert_eq!(f.go_on(last), Ok(next), "the answer was lost");
    assert_eq!(f.go_on(next), Ok(bumped(next)));
    assert_eq!(f.go_on(last), Err(ErrorCode::ProducerFenced));
}

#[test]
fn the_answer_with_the_last_epoch_may_be_asked_for_again() {
    let mut f = Fixture::new();
    let mut last = f.init().unwrap();
    while last.epoch < i16::MAX - 2 {
        last = f.init().unwrap();
    }
    let exhausted = f.go_on(last).unwrap();
    assert_eq!(exhausted.epoch, i16::MAX - 1);
    assert_eq!(f.go_on(last), Ok(exhausted));
    assert_eq!(f.go_on(Producer::new(last.id, 3)), Err(ErrorCode::ProducerFenced));
}
