//! Faults on demand: what a client meets, and what the broker has done.
//!
//! On the development broker alone: nobody can ask a real Kafka for them.

use flechtwerk_conformance::calls::records::produce_request;
use flechtwerk_conformance::*;
use flechtwerk_dev_broker::{Api, DevBroker, ErrorCode};
use kafka_protocol::messages::{EndTxnRequest, MetadataRequest, ProduceRequest};
use std::time::Duration;

/// A client, a topic and a producer in a transaction with one record.
fn in_transaction() -> (Client, String, Producer) {
    let mut client = Broker::get().client();
    let topic = client.topic(1);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["a"]);
    (client, topic, producer)
}

fn with_dev(check: impl FnOnce(&DevBroker)) {
    if let Some(dev) = Broker::get().as_dev() {
        check(dev);
    }
}

#[test]
fn an_answer_can_be_lost_after_the_effect() {
    with_dev(|dev| {
        let (mut client, topic, producer) = in_transaction();
        let fault = dev.fault().api(Api::EndTxn).apply_then_drop_reply();
        let mut lost = client.another();
        lost.send(&end(&producer));
        assert!(lost.is_closed_within(client::ANSWER));
        assert_eq!(fault.fired(), 1);
        wait_for("it was committed all the same", || client.values(&topic, 0, COMMITTED) == ["a"]);
        assert_eq!(producer.end(&mut client, true), Ok(()), "the retry");
    });
}

#[test]
fn a_request_can_be_lost_without_an_effect() {
    with_dev(|dev| {
        let (mut client, topic, producer) = in_transaction();
        dev.fault().api(Api::EndTxn).drop_connection();
        let mut lost = client.another();
        lost.send(&end(&producer));
        assert!(lost.is_closed_within(client::ANSWER));
        assert_eq!(client.transaction_state(&producer.transactional_id), "Ongoing");
        producer.commit(&mut client);
        assert_eq!(client.values(&topic, 0, COMMITTED), ["a"]);
    });
}

#[test]
fn an_error_can_be_answered_some_times_and_without_effect() {
    with_dev(|dev| {
        let mut client = Broker::get().client();
        let topic = client.topic(1);
        let fault = dev.fault().api(Api::Produce).times(2).answer(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        for _ in 0..2 {
            assert_eq!(client.produce(&topic, 0, &Batch::of(["a"])), Err(Code::OutOfOrderSequenceNumber));
        }
        assert_eq!(client.produce(&topic, 0, &Batch::of(["a"])), Ok(0));
        assert_eq!(fault.fired(), 2);
    });
}

#[test]
fn a_fault_hits_the_named_transactional_id_and_the_nth_request() {
    with_dev(|dev| {
        let (mut client, topic, mut one) = in_transaction();
        let mut other = client.transactional_producer();
        other.write(&mut client, &topic, 0, &["b"]);
        dev.fault()
            .api(Api::EndTxn)
            .transactional_id(one.transactional_id.clone())
            .nth(2)
            .answer(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        other.commit(&mut client);
        one.commit(&mut client);
        one.write(&mut client, &topic, 0, &["c"]);
        assert_eq!(one.end_once(&mut client, true), Err(Code::CoordinatorNotAvailable));
        one.commit(&mut client);
    });
}

#[test]
fn a_request_can_be_held_until_it_is_released() {
    with_dev(|dev| {
        let mut client = Broker::get().client();
        let topic = client.topic(1);
        let held = dev.fault().api(Api::Produce).before().hold();
        let mut waiting = client.another();
        waiting.send(&produce_request(&topic, 0, Batch::of(["a"]).encode(), None));
        assert!(held.wait(client::ANSWER));
        assert!(waiting.is_silent_for(Duration::from_millis(50)));
        assert_eq!(client.end(&topic, 0), 0);
        held.release();
        let answer = waiting.receive::<ProduceRequest>();
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    });
}

#[test]
fn an_answer_can_be_delayed() {
    with_dev(|dev| {
        let mut client = Broker::get().client();
        dev.fault().api(Api::Metadata).delay(Duration::from_millis(1_000));
        client.send(&MetadataRequest::default().with_topics(Some(Vec::new())));
        assert!(client.is_silent_for(Duration::from_millis(100)));
        assert!(!client.receive::<MetadataRequest>().brokers.is_empty());
    });
}

#[test]
fn the_log_of_requests_names_what_came() {
    with_dev(|dev| {
        let mut client = Broker::get().client();
        let topic = client.topic(1);
        let before = dev.requests().count(Api::Produce);
        client.produce(&topic, 0, &Batch::of(["a"])).expect("a record");
        assert_eq!(dev.requests().count(Api::Produce), before + 1);
        dev.requests().clear();
        assert_eq!(dev.requests().count(Api::Produce), 0);
    });
}

#[test]
fn a_node_can_be_down_and_back() {
    with_dev(|_| {
        let broker = Broker::dev(DevBroker::builder().nodes(2));
        let dev = broker.as_dev().expect("a development broker");
        let mut client = broker.client();
        let metadata = client.call(&MetadataRequest::default().with_topics(Some(Vec::new())));
        assert_eq!(metadata.brokers.len(), 2);
        let second = metadata.brokers.iter().find(|one| one.port != i32::from(broker.address().port()));
        let second = second.expect("a second node");
        let address = format!("127.0.0.1:{}", second.port).parse().expect("an address");
        let mut there = Client::connect(address);
        dev.node_down(second.node_id.0).expect("a known node");
        assert!(there.is_closed_within(client::ANSWER));
        assert_eq!(client.call(&MetadataRequest::default().with_topics(Some(Vec::new()))).brokers.len(), 1);
        dev.node_up(second.node_id.0).expect("a known node");
        Client::connect(address);
    });
}

fn end(producer: &Producer) -> EndTxnRequest {
    EndTxnRequest::default()
        .with_transactional_id(text(&producer.transactional_id).into())
        .with_producer_id(producer.id.into())
        .with_producer_epoch(producer.epoch)
        .with_committed(true)
}
