//! What transactions are after their broker was killed and started again.

use super::*;

#[test]
fn an_open_transaction_goes_on_after_a_restart() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    f.add(producer, 0);
    let before = f.describe();
    f.restart(1_000);
    assert_eq!(f.describe(), before);
    assert!(f.markers.is_empty());
    assert_eq!(f.add(producer, 1), ErrorCode::None);
    assert_eq!(f.end(producer, true), ErrorCode::None);
    assert_eq!(f.write_markers()[0].partitions.len(), 2);
}

#[test]
fn an_open_transaction_has_the_time_that_was_left() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    f.add(producer, 0);
    f.pass(20_000);
    f.restart(10_000);
    f.pass(29_999);
    assert_eq!(f.state(), TransactionState::Ongoing);
    f.pass(1);
    assert_eq!(f.state(), TransactionState::PrepareAbort);
}

#[test]
fn a_transaction_that_timed_out_while_the_broker_was_away_is_aborted() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    f.add(producer, 0);
    f.restart(3_600_000);
    f.pass(0);
    assert_eq!(f.state(), TransactionState::PrepareAbort);
    assert_eq!(f.write_markers()[0].producer, bumped(producer));
}

#[test]
fn a_clock_that_was_set_back_gives_no_more_time_than_there_was() {
    let mut f = Fixture::new();
    let producer = f.init().unwrap();
    f.add(producer, 0);
    f.now.wall -= 3_600_000;
    f.restart(0);
    f.pass(60_000);
    assert_eq!(f.state(), TransactionState::PrepareAbort);
}

#[test]
fn a_decided_transaction_has_its_markers_written_again() {
    for commit in [true, false] {
        let mut f = Fixture::new();
        let producer = f.init().unwrap();
        f.add(producer, 0);
        f.add_group(producer, "g");
        f.end(producer, commit);
        let before = f.markers.clone();
        f.restart(0);
        assert_eq!(f.markers, before);
        assert_eq!(f.init(), Err(ErrorCode::ConcurrentTransactions));
        f.write_markers();
        assert_eq!(f.end(producer, commit), ErrorCode::None);
        f.restart(0);
        assert!(f.markers.is_empty());
    }
}

#[test]
fn a_fencing_holds_over_a_restart() {
    let mut f = Fixture::new();
    let first = f.init().unwrap();
    let second = f.init().unwrap();
    f.restart(0);
    assert_eq!(f.add(first, 0), ErrorCode::ProducerFenced);
    assert_eq!(f.go_on(first), Err(ErrorCode::ProducerFenced));
    assert_eq!(f.add(second, 0), ErrorCode::None);
}

#[test]
fn a_retry_is_a_retry_over_a_restart() {
    let mut f = Fixture::new();
    let first = f.init().unwrap();
    let second = f.go_on(first).unwrap();
    f.restart(0);
    assert_eq!(f.go_on(first), Ok(second));
}

#[test]
fn no_producer_id_is_given_twice_over_a_restart() {
    let mut f = Fixture::new();
    let idempotent = InitRequest { transactional_id: None, timeout_ms: 0, current: NONE };
    let first = f.request(&idempotent).unwrap();
    f.restart(0);
    assert_eq!(f.request(&idempotent), Ok(Producer::new(first.id + 1, 0)));
    f.settings.first_producer_id = 5_000;
    f.restart(0);
    assert_eq!(f.request(&idempotent), Ok(Producer::new(5_000, 0)), "unless the first was raised");
}
