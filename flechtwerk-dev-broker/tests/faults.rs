//! Faults: which requests they hit, and what is left of the request's effect.

mod support;

use std::time::Duration;

use flechtwerk_dev_broker::{Api, DevBroker, ErrorCode};
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, ApiVersionsRequest, DescribeTransactionsRequest, EndTxnRequest, FetchRequest,
    InitProducerIdRequest, ProduceRequest, TransactionalId,
};
use support::{Client, PATIENCE, batch, fetch, produce, text, topic, until};

fn broker() -> DevBroker {
    DevBroker::builder().topic(("orders", 1)).start().unwrap()
}

fn end_offset(broker: &DevBroker) -> i64 {
    let answer = Client::named(broker.address(), "reader").call(11, &fetch("orders", 0, 0, 0));
    answer.responses[0].partitions[0].high_watermark
}

fn code(answer: &kafka_protocol::messages::ProduceResponse) -> ErrorCode {
    ErrorCode::new(answer.responses[0].partition_responses[0].error_code)
}

#[test]
fn an_error_is_answered_without_effect_and_only_so_often() {
    let broker = broker();
    let fault = broker.fault().api(Api::Produce).times(2).answer(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let mut client = Client::connect(broker.address());
    let request = produce("orders", 0, batch(b"x"));
    assert_eq!(code(&client.call(9, &request)), ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(code(&client.call(9, &request)), ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(end_offset(&broker), 0);
    assert_eq!(code(&client.call(9, &request)), ErrorCode::NONE);
    assert_eq!((end_offset(&broker), fault.fired()), (1, 2));
}

#[test]
fn the_nth_request_of_a_client_is_hit_and_no_other() {
    let broker = broker();
    let fault = broker.fault().api(Api::Produce).client("worker").nth(2).drop_connection();
    let mut other = Client::named(broker.address(), "other");
    let mut worker = Client::named(broker.address(), "worker");
    let request = produce("orders", 0, batch(b"x"));
    other.call(9, &request);
    other.call(9, &request);
    worker.call(9, &request);
    assert_eq!(fault.fired(), 0);
    assert!(worker.try_call(9, &request).is_err());
    assert_eq!((end_offset(&broker), fault.fired()), (3, 1));
    Client::named(broker.address(), "worker").call(9, &request);
    assert_eq!((end_offset(&broker), fault.fired()), (4, 1));
}

#[test]
fn a_request_may_have_its_effect_and_lose_its_answer() {
    let broker = broker();
    let fault = broker.fault().api(Api::Produce).apply_then_drop_reply();
    let mut client = Client::connect(broker.address());
    assert!(client.try_call(9, &produce("orders", 0, batch(b"x"))).is_err());
    assert!(fault.wait(PATIENCE));
    assert_eq!(end_offset(&broker), 1);
}

#[test]
fn a_request_may_have_its_effect_and_be_answered_an_error() {
    let broker = broker();
    broker.fault().api(Api::Produce).apply_then_answer(ErrorCode::REQUEST_TIMED_OUT);
    let mut client = Client::connect(broker.address());
    assert_eq!(code(&client.call(9, &produce("orders", 0, batch(b"x")))), ErrorCode::REQUEST_TIMED_OUT);
    assert_eq!(end_offset(&broker), 1);
}

#[test]
fn a_client_that_wants_no_answer_is_hung_up_on() {
    let broker = broker();
    broker.fault().api(Api::Produce).answer(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let mut client = Client::connect(broker.address());
    client.send(9, &produce("orders", 0, batch(b"x")).with_acks(0)).unwrap();
    assert!(client.is_closed());
    assert_eq!(end_offset(&broker), 0);
}

#[test]
fn a_held_request_goes_on_when_it_is_released() {
    let broker = broker();
    for after in [false, true] {
        let before = end_offset(&broker);
        let fault = broker.fault().api(Api::Produce);
        let held = if after { fault.after().hold() } else { fault.hold() };
        let mut client = Client::connect(broker.address());
        client.send(9, &produce("orders", 0, batch(b"x"))).unwrap();
        assert!(held.wait(PATIENCE));
        if after {
            until("the request has had its effect", || end_offset(&broker) == before + 1);
        } else {
            assert_eq!(end_offset(&broker), before);
        }
        held.release();
        assert_eq!(code(&client.answer::<ProduceRequest>(9).unwrap()), ErrorCode::NONE);
        assert_eq!(end_offset(&broker), before + 1);
    }
}

#[test]
fn dropping_a_hold_releases_it() {
    let broker = broker();
    let held = broker.fault().client("test").always().hold();
    let mut client = Client::connect(broker.address());
    client.send(0, &ApiVersionsRequest::default()).unwrap();
    assert!(held.wait(PATIENCE));
    drop(held);
    client.answer::<ApiVersionsRequest>(0).unwrap();
    client.call(0, &ApiVersionsRequest::default());
}

#[test]
fn a_delayed_request_is_answered_in_the_end() {
    let broker = broker();
    let fault = broker.fault().api(Api::Fetch).delay(Duration::from_millis(1));
    let mut client = Client::connect(broker.address());
    client.send(11, &fetch("orders", 0, 0, 0)).unwrap();
    client.answer::<FetchRequest>(11).unwrap();
    assert_eq!(fault.fired(), 1);
}

#[test]
fn a_removed_fault_hits_nothing() {
    let broker = broker();
    let fault = broker.fault().always().drop_connection();
    fault.remove();
    Client::connect(broker.address()).call(0, &ApiVersionsRequest::default());
    assert_eq!(fault.fired(), 0);
    assert!(!fault.wait(Duration::ZERO));
}

#[test]
fn faults_go_by_transactional_id() {
    let broker = broker();
    let fault = broker.fault().transactional_id("mine").always().answer(ErrorCode::CONCURRENT_TRANSACTIONS);
    let mut client = Client::connect(broker.address());
    let mut init = |id: &str| {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(TransactionalId(text(id))))
            .with_transaction_timeout_ms(60_000);
        ErrorCode::new(client.call(4, &request).error_code)
    };
    assert_eq!(init("mine"), ErrorCode::CONCURRENT_TRANSACTIONS);
    assert_eq!(init("yours"), ErrorCode::NONE);
    assert_eq!(init("mine"), ErrorCode::CONCURRENT_TRANSACTIONS);
    assert_eq!(fault.fired(), 2);
}

#[test]
fn held_markers_keep_a_transaction_between_its_decision_and_its_end() {
    let broker = broker();
    let mut client = Client::connect(broker.address());
    let id = TransactionalId(text("mine"));
    let init = InitProducerIdRequest::default()
        .with_transactional_id(Some(id.clone()))
        .with_transaction_timeout_ms(60_000);
    let producer = client.call(4, &init);
    let add = AddPartitionsToTxnRequest::default()
        .with_v3_and_below_transactional_id(id.clone())
        .with_v3_and_below_producer_id(producer.producer_id)
        .with_v3_and_below_producer_epoch(producer.producer_epoch)
        .with_v3_and_below_topics(vec![
            AddPartitionsToTxnTopic::default().with_name(topic("orders")).with_partitions(vec![0]),
        ]);
    let added = client.call(3, &add);
    assert_eq!(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code, 0);

    let held = broker.hold_markers("mine");
    let end = EndTxnRequest::default()
        .with_transactional_id(id.clone())
        .with_producer_id(producer.producer_id)
        .with_producer_epoch(producer.producer_epoch)
        .with_committed(true);
    assert_eq!(client.call(3, &end).error_code, 0);
    assert!(held.wait(PATIENCE));
    let state = |client: &mut Client| {
        let describe = DescribeTransactionsRequest::default().with_transactional_ids(vec![id.clone()]);
        client.call(0, &describe).transaction_states[0].transaction_state.to_string()
    };
    assert_eq!(state(&mut client), "PrepareCommit");
    assert_eq!(ErrorCode::new(client.call(4, &init).error_code), ErrorCode::CONCURRENT_TRANSACTIONS);
    assert_eq!(end_offset(&broker), 0);

    held.release();
    assert_eq!(state(&mut client), "CompleteCommit");
    assert_eq!(end_offset(&broker), 1);
    assert_eq!(client.call(4, &init).error_code, 0);
}

#[test]
fn requests_are_remembered_without_their_content() {
    let broker = DevBroker::builder().remember_requests(3).start().unwrap();
    let mut client = Client::named(broker.address(), "me");
    for _ in 0..5 {
        client.call(0, &ApiVersionsRequest::default());
    }
    assert_eq!(broker.requests().count(Api::ApiVersions), 3);
    let request = broker.requests().all().remove(0);
    assert_eq!((request.api, request.version, request.node), (Api::ApiVersions, 0, 1));
    assert_eq!(request.client_id.as_deref(), Some("me"));
    broker.requests().clear();
    assert_eq!(broker.requests().all(), Vec::new());
    client.call(0, &ApiVersionsRequest::default());
    assert!(broker.requests().wait_for(PATIENCE, |request| request.api == Api::ApiVersions));
    assert!(!broker.requests().wait_for(Duration::ZERO, |request| request.api == Api::Fetch));
}
