//! Each action: what the client meets, and what the broker has done.

use std::time::Duration;

use flechtwerk_conformance::client::ANSWER;
use flechtwerk_conformance::{code, wait_for};
use flechtwerk_dev_broker::Api;
use flechtwerk_proxy::{Action, ApiKey, Rule};
use kafka_protocol::messages::{EndTxnRequest, MetadataRequest};

use crate::setup::{Open, PATIENCE, WORKER, on, one};

/// For as long as nothing must happen.
const NOTHING: Duration = Duration::from_millis(200);

#[test]
fn a_request_is_dropped_before_the_broker_acted() {
    let setup = one();
    let mut open = Open::new(&setup);
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).then(Action::DropConnection));
    open.client.send(&open.commit());
    assert!(open.client.is_closed_within(ANSWER));
    assert_eq!(fault.fired(), 1);
    assert!(open.is_open(&setup));
    // The rule is spent.
    assert_eq!(code(setup.worker().call(&open.commit()).error_code), Ok(()));
    assert!(open.is_committed(&setup));
}

#[test]
fn an_answer_is_dropped_after_the_broker_acted() {
    let setup = one();
    let mut open = Open::new(&setup);
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).then(Action::ApplyThenDropReply));
    open.client.send(&open.commit());
    assert!(open.client.is_closed_within(ANSWER));
    assert_eq!(fault.fired(), 1);
    wait_for("it is committed all the same", || open.is_committed(&setup));
    assert_eq!(code(setup.worker().call(&open.commit()).error_code), Ok(()), "the retry");
}

#[test]
fn a_request_is_lost_and_its_connection_stays_open() {
    let setup = one();
    let mut open = Open::new(&setup);
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).then(Action::Lose));
    open.client.send(&open.commit());
    assert!(fault.wait(PATIENCE));
    // What comes behind it on this connection is lost as well.
    let asked = setup.seen(Api::Metadata);
    open.client.send(&MetadataRequest::default());
    assert!(open.client.is_silent_for(NOTHING));
    assert!(open.is_open(&setup));
    assert_eq!(setup.seen(Api::Metadata), asked);
    assert_eq!(code(setup.worker().call(&open.commit()).error_code), Ok(()), "on another connection");
}

#[test]
fn an_answer_is_lost_and_its_connection_stays_open() {
    let setup = one();
    let mut open = Open::new(&setup);
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).then(Action::ApplyThenLoseReply));
    open.client.send(&open.commit());
    assert!(fault.wait(PATIENCE));
    wait_for("it is committed all the same", || open.is_committed(&setup));
    // Requests still arrive; the answers are lost.
    let asked = setup.seen(Api::Metadata);
    open.client.send(&MetadataRequest::default());
    wait_for("what comes behind it arrives", || setup.seen(Api::Metadata) > asked);
    assert!(open.client.is_silent_for(NOTHING));
}

#[test]
fn a_request_is_held_until_it_is_released() {
    let setup = one();
    let mut open = Open::new(&setup);
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).then(Action::Hold));
    open.client.send(&open.commit());
    assert!(fault.wait(PATIENCE));
    assert!(open.client.is_silent_for(NOTHING));
    assert!(open.is_open(&setup));
    assert_eq!(fault.held(), 1);
    // What comes behind it waits as well, on this connection alone.
    let asked = setup.seen(Api::Metadata);
    open.client.send(&MetadataRequest::default());
    setup.worker().call(&MetadataRequest::default());
    assert_eq!(setup.seen(Api::Metadata), asked + 1);
    fault.release();
    let correlation_ids = [(); 2].map(|()| {
        let frame = open.client.receive_frame(ANSWER).expect("an answer");
        frame.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes)).expect("a correlation id")
    });
    assert_eq!(correlation_ids[0] + 1, correlation_ids[1], "in order");
    assert_eq!(fault.held(), 0);
}

#[test]
fn a_held_request_outlives_its_client() {
    let setup = one();
    let mut open = Open::new(&setup);
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).then(Action::Hold));
    open.client.send(&open.commit());
    assert!(fault.wait(PATIENCE));
    open.client = setup.direct();
    assert!(open.is_open(&setup));
    fault.release();
    wait_for("it reaches the broker", || open.is_committed(&setup));
}

#[test]
fn what_is_held_is_released_with_its_rule() {
    let setup = one();
    let mut open = Open::new(&setup);
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).always().then(Action::Hold));
    open.client.send(&open.commit());
    assert!(fault.wait(PATIENCE));
    drop(fault);
    assert_eq!(code(open.client.receive::<EndTxnRequest>().error_code), Ok(()));
    assert_eq!(code(open.client.call(&open.commit()).error_code), Ok(()), "no other is held");
}

#[test]
fn an_answer_is_held_until_it_is_released() {
    let setup = one();
    let mut open = Open::new(&setup);
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).then(Action::ApplyThenHoldReply));
    open.client.send(&open.commit());
    assert!(fault.wait(PATIENCE));
    wait_for("it is committed", || open.is_committed(&setup));
    assert!(open.client.is_silent_for(NOTHING));
    fault.release();
    assert_eq!(code(open.client.receive::<EndTxnRequest>().error_code), Ok(()));
}

/// What is delayed arrives. That it is not there before can be seen without looking at a clock: a delay that never ends.
#[test]
fn requests_and_answers_are_delayed() {
    let setup = one();
    let mut open = Open::new(&setup);
    let never = Duration::from_secs(1_000_000);
    for (short, long) in [
        (Action::Delay(NOTHING), Action::Delay(never)),
        (Action::ApplyThenDelayReply(NOTHING), Action::ApplyThenDelayReply(never)),
    ] {
        let fault = setup.proxy.rule(on(ApiKey::Metadata).then(short));
        open.client.call(&MetadataRequest::default());
        assert_eq!(fault.fired(), 1);

        let mut other = setup.worker();
        let asked = setup.seen(Api::Metadata);
        let fault = setup.proxy.rule(on(ApiKey::Metadata).then(long));
        other.send(&MetadataRequest::default());
        assert!(fault.wait(PATIENCE));
        let acts_first = usize::from(matches!(long, Action::ApplyThenDelayReply(_)));
        assert_eq!(setup.seen(Api::Metadata), asked + acts_first, "{long}");
        assert!(other.is_silent_for(NOTHING));
    }
}

#[test]
fn all_connections_of_a_client_are_dropped() {
    let setup = one();
    let mut open = Open::new(&setup);
    let mut beside = setup.worker();
    let mut stranger = setup.worker().named("stranger");
    for client in [&mut beside, &mut stranger] {
        client.call(&MetadataRequest::default());
    }
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).then(Action::ApplyThenDropClient));
    open.client.send(&open.commit());
    assert!(open.client.is_closed_within(ANSWER));
    assert!(beside.is_closed_within(ANSWER));
    assert_eq!(fault.fired(), 1);
    wait_for("it is committed", || open.is_committed(&setup));
    stranger.call(&MetadataRequest::default());

    let mut again = setup.worker();
    again.call(&MetadataRequest::default());
    assert_eq!(setup.proxy.drop_connections(WORKER), 1);
    assert!(again.is_closed_within(ANSWER));
    stranger.call(&MetadataRequest::default());
}

/// Of several requests only the n-th that matches is hit: by its client, its transactional id, and its API.
#[test]
fn the_nth_that_matches() {
    let setup = one();
    let mut open = Open::new(&setup);
    let id = &open.producer.transactional_id;
    let of = || Rule::on(ApiKey::EndTxn).transactional_id(id);
    let third = setup.proxy.rule(of().nth(3).then(Action::ApplyThenDropReply));
    let other_id = setup.proxy.rule(
        Rule::on(ApiKey::EndTxn).transactional_id(format!("{id}x")).always().then(Action::DropConnection),
    );
    let other_client =
        setup.proxy.rule(Rule::any().client("somebody else").always().then(Action::DropConnection));
    let other_node = setup.proxy.rule(Rule::any().node(2).always().then(Action::DropConnection));
    for _ in 0..2 {
        assert_eq!(code(open.client.call(&open.commit()).error_code), Ok(()));
    }
    open.client.call(&MetadataRequest::default());
    assert_eq!(third.fired(), 0);
    open.client.send(&open.commit());
    assert!(open.client.is_closed_within(ANSWER));
    assert_eq!(third.fired(), 1);
    assert_eq!(code(setup.worker().call(&open.commit()).error_code), Ok(()), "the fourth");
    assert_eq!([other_id.fired(), other_client.fired(), other_node.fired()], [0; 3]);
}

/// So many times, or until it is removed; a rule that another one comes before counts what it does not hit.
#[test]
fn how_often_a_rule_hits() {
    let setup = one();
    let mut client = setup.worker();
    let no_delay = Action::Delay(Duration::ZERO);
    let twice = setup.proxy.rule(on(ApiKey::Metadata).times(2).then(no_delay));
    let behind = setup.proxy.rule(on(ApiKey::Metadata).nth(2).then(no_delay));
    let always = setup.proxy.rule(on(ApiKey::Metadata).always().then(no_delay));
    let answers =
        setup.proxy.rule(on(ApiKey::Metadata).always().then(Action::ApplyThenDelayReply(Duration::ZERO)));
    for _ in 0..5 {
        client.call(&MetadataRequest::default());
    }
    let fired = || [&twice, &behind, &always, &answers].map(|fault| fault.fired());
    assert_eq!(fired(), [2, 0, 3, 5]);
    always.remove();
    answers.remove();
    client.call(&MetadataRequest::default());
    assert_eq!(fired(), [2, 0, 3, 5]);
    assert!(!always.wait_times(4, Duration::from_millis(1)));
}

/// The log says what a rule did to which request, and the counts say how many there were.
#[test]
fn the_log_and_the_counts() {
    let setup = one();
    let mut open = Open::new(&setup);
    let fault = setup.proxy.rule(on(ApiKey::EndTxn).then(Action::ApplyThenDropReply));
    open.client.send(&open.commit());
    assert!(open.client.is_closed_within(ANSWER));
    let log = setup.proxy.log();
    let [event] = &log[..] else { panic!("one event: {log:?}") };
    let request = event.request.as_ref().expect("a request");
    assert_eq!(event.rule, Some(fault.number()));
    assert_eq!(event.what, "apply, then drop the answer");
    assert_eq!(event.node, Some(1));
    assert_eq!(request.api(), Some(ApiKey::EndTxn));
    assert_eq!(request.client_id.as_deref(), Some(WORKER));
    assert_eq!(request.transactional_id.as_ref(), Some(&open.producer.transactional_id));
    assert!(event.to_string().contains("EndTxn"), "{event}");
    let key = ("EndTxn".to_owned(), WORKER.to_owned());
    assert_eq!(setup.proxy.requests()[&key], 1);
}
