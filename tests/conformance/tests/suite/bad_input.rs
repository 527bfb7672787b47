//! What no client may send: the connection ends, and everything else goes on.

use bytes::BufMut;
use flechtwerk_conformance::client::{ANSWER, raw_frame};
use flechtwerk_conformance::*;
use kafka_protocol::messages::ApiVersionsRequest;

/// Sends bytes on a connection of their own: the broker closes it, and an older one and a new one go on.
#[track_caller]
fn closes(bytes: &[u8]) {
    let broker = Broker::get();
    let mut witness = broker.client();
    let mut client = broker.raw();
    client.send_bytes(bytes);
    assert!(client.is_closed_within(ANSWER), "the connection stands");
    for other in [&mut witness, &mut broker.client()] {
        assert_eq!(other.call_at(0, &ApiVersionsRequest::default()).error_code, 0);
    }
}

#[test]
fn a_frame_that_is_too_long_closes_the_connection() {
    for length in [i32::MAX, 104_857_601] {
        closes(&length.to_be_bytes());
    }
}

#[test]
fn a_negative_length_closes_the_connection() {
    for length in [-1, i32::MIN] {
        closes(&[length.to_be_bytes(), [0; 4]].concat());
    }
}

#[test]
fn a_frame_that_is_too_short_for_a_header_closes_the_connection() {
    for length in [0u8, 1, 7] {
        let mut frame = vec![0, 0, 0, length];
        frame.extend(vec![0; usize::from(length)]);
        closes(&frame);
    }
}

#[test]
fn an_unknown_api_closes_the_connection() {
    for key in [9999, -1, i16::MAX] {
        closes(&raw_frame(key, 0, 1, 1, &[]));
    }
}

#[test]
fn an_api_that_is_not_advertised_closes_the_connection() {
    let client = Broker::get().client();
    // What brokers say to each other is not for clients: LeaderAndIsr, UpdateMetadata.
    for key in [4, 6] {
        assert!(!client.versions().contains_key(&key), "API {key}");
        closes(&raw_frame(key, 0, 1, 1, &[0; 32]));
    }
}

#[test]
fn an_unknown_version_closes_the_connection() {
    for (key, version) in [(3, 99), (0, -1), (1, 2), (0, 0)] {
        closes(&raw_frame(key, version, 1, 1, &[0; 32]));
    }
}

#[test]
fn a_body_that_is_cut_off_closes_the_connection() {
    // Metadata version 4: an array of three topics, of which there is none.
    closes(&raw_frame(3, 4, 1, 1, &[0, 0, 0, 3]));
    // FindCoordinator version 0: a string of ten bytes, of which there are two.
    closes(&raw_frame(10, 0, 1, 1, &[0, 10, b'a', b'b']));
    closes(&raw_frame(22, 0, 1, 1, &[0]));
}

#[test]
fn an_array_whose_length_lies_closes_the_connection() {
    for length in [i32::MAX, 100_000_000, -2] {
        closes(&raw_frame(3, 4, 1, 1, &length.to_be_bytes()));
    }
}

#[test]
fn a_compact_array_whose_length_lies_closes_the_connection() {
    // Metadata version 9 with the greatest length that a varint of five bytes can say.
    closes(&raw_frame(3, 9, 1, 2, &[0xff, 0xff, 0xff, 0xff, 0x0f]));
    // A varint without an end.
    closes(&raw_frame(3, 9, 1, 2, &[0xff; 12]));
}

#[test]
fn records_whose_length_lies_close_the_connection() {
    let mut body = Vec::new();
    body.put_i16(-1); // no transactional id
    body.put_i16(1); // acks
    body.put_i32(1000);
    body.put_i32(1);
    body.put_i16(1);
    body.put_u8(b't');
    body.put_i32(1);
    body.put_i32(0);
    body.put_i32(i32::MAX); // the length of the records
    body.put_slice(&[0; 20]);
    closes(&raw_frame(0, 3, 1, 1, &body));
}

#[test]
fn a_string_that_is_no_text_harms_nobody() {
    let broker = Broker::get();
    let mut client = broker.raw();
    client.send_bytes(&raw_frame(10, 0, 1, 1, &[0, 2, 0xff, 0xfe]));
    // Answered or closed: both are fine.
    let _ = client.receive_frame(ANSWER);
    assert_eq!(broker.client().call_at(0, &ApiVersionsRequest::default()).error_code, 0);
}

#[test]
fn bytes_of_another_protocol_close_the_connection() {
    closes(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    closes(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]);
}

#[test]
fn a_client_that_goes_away_within_a_frame_harms_nobody() {
    let broker = Broker::get();
    let whole = raw_frame(3, 4, 1, 1, &[0, 0, 0, 0, 0]);
    for length in [1, 4, 9, whole.len() - 1] {
        let mut client = broker.raw();
        client.send_bytes(&whole[..length]);
        client.shut_down_write();
        assert!(client.is_closed_within(ANSWER), "after {length} bytes");
    }
    assert_eq!(broker.client().call_at(0, &ApiVersionsRequest::default()).error_code, 0);
}

#[test]
fn a_client_that_stops_within_a_frame_holds_nobody_up() {
    let broker = Broker::get();
    let mut slow = broker.raw();
    slow.send_bytes(&[0, 0, 0, 50, 0, 3]);
    let mut client = broker.client();
    let topic = client.topic(1);
    assert_eq!(client.produce(&topic, 0, &Batch::of(["a"])), Ok(0));
    assert!(slow.is_silent_for(std::time::Duration::from_millis(50)));
}

#[test]
fn a_frame_that_comes_byte_by_byte_is_answered() {
    let mut client = Broker::get().raw();
    for byte in raw_frame(18, 0, 5, 1, &[]) {
        client.send_bytes(&[byte]);
    }
    let answer = client.receive_frame(ANSWER).expect("an answer");
    assert_eq!(answer[..4], [0, 0, 0, 5]);
}

#[test]
fn many_idle_connections_hold_nobody_up() {
    let broker = Broker::get();
    let idle: Vec<Client> = (0..200).map(|_| broker.raw()).collect();
    assert_eq!(broker.client().call_at(0, &ApiVersionsRequest::default()).error_code, 0);
    drop(idle);
}
