//! Order, and what is wrong on a connection: it ends that one alone.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use flechtwerk_conformance::calls::records::produce_request;
use flechtwerk_conformance::client::{ANSWER, raw_frame};
use flechtwerk_conformance::{Batch, Client, wait_for};
use flechtwerk_proxy::{Action, ApiKey, Proxy};
use kafka_protocol::messages::MetadataRequest;

use crate::setup::{Setup, address, on, one};

/// Many requests without waiting: the answers come in order, though one of each kind is delayed.
#[test]
fn the_order_is_kept() {
    let setup = one();
    let delay = Duration::from_millis(100);
    let _before = setup.proxy.rule(on(ApiKey::Metadata).nth(3).then(Action::Delay(delay)));
    let _after = setup.proxy.rule(on(ApiKey::Metadata).nth(5).then(Action::ApplyThenDelayReply(delay)));
    let mut client = Client::raw(setup.address()).named(crate::setup::WORKER);
    for _ in 0..100 {
        client.send_at(1, &MetadataRequest::default());
    }
    for number in 1..=100 {
        let frame = client.receive_frame(ANSWER).expect("an answer");
        assert_eq!(frame[..4], i32::to_be_bytes(number));
    }
}

/// A Produce that asks for no acknowledgement gets no answer, and holds up none.
#[test]
fn a_request_without_an_answer() {
    let setup = one();
    let mut client = setup.worker();
    let topic = client.topic(1);
    let after = setup.proxy.rule(on(ApiKey::Produce).always().then(Action::ApplyThenDropReply));
    for _ in 0..3 {
        let records = Batch::of(["a"]).encode();
        client.send(&produce_request(&topic, 0, records, None).with_acks(0));
        client.call(&MetadataRequest::default());
    }
    wait_for("the records are written", || setup.direct().end(&topic, 0) == 3);
    assert_eq!(after.fired(), 0, "there is no answer to drop");
}

/// A broker that takes nothing: its client can't send without end, for the proxy keeps no more than a frame or two.
#[test]
fn who_sends_too_much_has_to_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (proxy, _listener) = {
        let at = listener.local_addr().expect("its address");
        // It closes the connection that asks for the nodes, and keeps the next one without reading it.
        let broker = thread::spawn(move || {
            drop(listener.accept().expect("a connection"));
            listener
        });
        let proxy = Proxy::start(&[at.to_string()]).expect("a proxy");
        (proxy, broker.join().expect("the broker"))
    };
    let mut client = TcpStream::connect(proxy.bootstrap()).expect("a connection");
    client.set_write_timeout(Some(Duration::from_secs(1))).expect("a time-out");
    let frame = raw_frame(3, 1, 1, 1, &vec![0; 1 << 20]);
    let mut taken = 0;
    while client.write_all(&frame).is_ok() {
        taken += 1;
        assert!(taken < 200, "200 MiB are somewhere between a client and a broker that takes nothing");
    }
}

/// The proxy still serves others.
fn assert_serves(setup: &Setup) {
    setup.worker().call(&MetadataRequest::default());
}

#[test]
fn garbage_of_a_client() {
    let setup = one();
    let mut bystander = setup.worker();
    let frames: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 64],
        // Too short, and a client id that is longer than the frame.
        &[0, 0, 0, 7, 0, 3, 0, 0, 0, 0, 0],
        &[0, 0, 0, 10, 0, 3, 0, 0, 0, 0, 0, 1, 0x7f, 0xff],
        // One byte more than the longest.
        &(200 * 1024 * 1024 + 1i32).to_be_bytes(),
        // A client id that is no text.
        &[0, 0, 0, 12, 0, 3, 0, 0, 0, 0, 0, 1, 0, 2, 0xff, 0xfe],
    ];
    for frame in frames {
        let mut client = Client::raw(setup.address());
        client.send_bytes(frame);
        assert!(client.is_closed_within(ANSWER), "{frame:?}");
    }
    bystander.call(&MetadataRequest::default());
    assert_serves(&setup);
}

/// What is well-formed and unknown goes through to the broker, who closes the connection.
#[test]
fn an_unknown_request() {
    let setup = one();
    let mut client = Client::raw(setup.address());
    client.send_bytes(&raw_frame(999, 3, 1, 1, &[1, 2, 3]));
    assert!(client.is_closed_within(ANSWER));
    assert!(setup.proxy.requests().contains_key(&("API 999".to_owned(), "conformance".to_owned())));
    assert_serves(&setup);
}

/// Brokers that answer nonsense: that connection ends, and the proxy serves on.
#[test]
fn garbage_of_a_broker() {
    // The correlation id of the first request is 1.
    let answers: [&[u8]; 6] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        &[0xff; 64],
        &[0, 0, 0, 3, 0, 0, 0],
        // The answer to another request.
        &[0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 0],
        // Two thousand million nodes.
        &[0, 0, 0, 8, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff],
        &[0, 0, 0, 8, 0, 0, 0, 1, 0x80, 0, 0, 0],
    ];
    for answer in answers {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("its address");
        let broker = thread::spawn(move || {
            // The first asks for the nodes, the second is the client.
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().expect("a connection");
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(answer);
                // Open until the other side has closed it.
                let _ = stream.read(&mut [0; 1024]);
            }
        });
        let proxy = Proxy::start(&[at.to_string()]).expect("a proxy");
        let mut client = Client::raw(address(&proxy.bootstrap()));
        client.send_at(1, &MetadataRequest::default());
        assert!(client.is_closed_within(ANSWER), "{answer:?}");
        broker.join().expect("the broker");
        assert!(std::net::TcpStream::connect(proxy.bootstrap()).is_ok(), "{answer:?}");
    }
}
