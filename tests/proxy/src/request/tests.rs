//! Requests as `kafka-protocol` writes them, of all versions.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTransaction;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Encodable, Request as KafkaRequest, StrBytes};

use super::*;

const TRANSACTIONAL_ID: &str = "orders-7";
const GROUP: &str = "some-group";

fn text(value: &'static str) -> StrBytes {
    StrBytes::from_static_str(value)
}

fn frame<R: KafkaRequest>(version: i16, request: &R) -> Vec<u8> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(5)
        .with_client_id(Some(text("a client")));
    let mut bytes = BytesMut::new();
    bytes.put_i32(0);
    header.encode(&mut bytes, R::header_version(version)).expect("a header");
    request.encode(&mut bytes, version).expect("a request");
    bytes.to_vec()
}

/// Every version of a request names these ids. `oldest`: the first that has them.
fn names<R: KafkaRequest>(oldest: i16, ids: [Option<&str>; 2], make: impl Fn(i16) -> R) {
    for version in oldest..=R::VERSIONS.max {
        let parsed = parse(&frame(version, &make(version))).expect("well-formed");
        let request = parsed.request;
        let found = [request.transactional_id.as_deref(), request.group_id.as_deref()];
        assert_eq!(found, ids, "{} v{version}", request.name());
        assert_eq!((request.key, request.version, request.correlation_id), (R::KEY, version, 5));
        assert_eq!(request.client_id.as_deref(), Some("a client"));
        assert!(parsed.answered);
    }
}

#[test]
fn transactional_ids() {
    let ids = [Some(TRANSACTIONAL_ID), None];
    let id = || TransactionalId(text(TRANSACTIONAL_ID));
    names(0, ids, |_| InitProducerIdRequest::default().with_transactional_id(Some(id())));
    names(0, ids, |_| EndTxnRequest::default().with_transactional_id(id()));
    names(3, ids, |_| ProduceRequest::default().with_transactional_id(Some(id())).with_acks(-1));
    names(0, ids, |_| {
        DescribeTransactionsRequest::default().with_transactional_ids(vec![id(), text("b").into()])
    });
    names(0, ids, |version| match version {
        0..=3 => AddPartitionsToTxnRequest::default().with_v3_and_below_transactional_id(id()),
        _ => {
            let transaction = AddPartitionsToTxnTransaction::default().with_transactional_id(id());
            AddPartitionsToTxnRequest::default().with_transactions(vec![transaction])
        }
    });
    names(1, ids, |version| coordinator(version, TRANSACTIONAL_ID, 1));
}

fn coordinator(version: i16, key: &'static str, key_type: i8) -> FindCoordinatorRequest {
    let request = FindCoordinatorRequest::default().with_key_type(key_type);
    match version {
        0..=3 => request.with_key(text(key)),
        _ => request.with_coordinator_keys(vec![text(key), text("another")]),
    }
}

#[test]
fn groups() {
    let ids = [None, Some(GROUP)];
    let id = || GroupId(text(GROUP));
    names(0, ids, |_| HeartbeatRequest::default().with_group_id(id()));
    names(2, ids, |_| JoinGroupRequest::default().with_group_id(id()));
    names(0, ids, |_| SyncGroupRequest::default().with_group_id(id()));
    names(0, ids, |_| LeaveGroupRequest::default().with_group_id(id()));
    names(2, ids, |_| OffsetCommitRequest::default().with_group_id(id()));
    names(0, ids, |_| OffsetDeleteRequest::default().with_group_id(id()));
    names(0, ids, |_| DescribeGroupsRequest::default().with_groups(vec![id()]));
    names(0, ids, |_| DeleteGroupsRequest::default().with_groups_names(vec![id()]));
    names(0, ids, |_| ConsumerGroupHeartbeatRequest::default().with_group_id(id()));
    names(0, ids, |_| ConsumerGroupDescribeRequest::default().with_group_ids(vec![id()]));
    names(1, ids, |_| ShareGroupHeartbeatRequest::default().with_group_id(id()));
    names(1, ids, |_| ShareFetchRequest::default().with_group_id(Some(id())));
    names(1, ids, |_| ShareAcknowledgeRequest::default().with_group_id(Some(id())));
    names(1, ids, |version| match version {
        0..=7 => OffsetFetchRequest::default().with_group_id(id()),
        _ => {
            let group = OffsetFetchRequestGroup::default().with_group_id(id());
            OffsetFetchRequest::default().with_groups(vec![group])
        }
    });
    names(1, ids, |version| coordinator(version, GROUP, 0));
    names(0, ids, |version| coordinator(version, GROUP, 0));
}

#[test]
fn transactional_ids_with_groups() {
    let ids = [Some(TRANSACTIONAL_ID), Some(GROUP)];
    names(0, ids, |_| {
        TxnOffsetCommitRequest::default()
            .with_transactional_id(text(TRANSACTIONAL_ID).into())
            .with_group_id(text(GROUP).into())
    });
    names(0, ids, |_| {
        AddOffsetsToTxnRequest::default()
            .with_transactional_id(text(TRANSACTIONAL_ID).into())
            .with_group_id(text(GROUP).into())
    });
}

/// Only a Produce that asks for no acknowledgement has no answer.
#[test]
fn requests_without_an_answer() {
    for version in 3..=13 {
        for (acks, answered) in [(0, false), (1, true), (-1, true)] {
            let frame = frame(version, &ProduceRequest::default().with_acks(acks));
            assert_eq!(parse(&frame).expect("well-formed").answered, answered, "v{version} acks {acks}");
        }
    }
}

/// Other requests name nothing that concerns rules.
#[test]
fn requests_without_ids() {
    names(0, [None; 2], |_| MetadataRequest::default());
    names(4, [None; 2], |_| FetchRequest::default());
    names(0, [None; 2], |_| ApiVersionsRequest::default());
}

/// A body that can't be read is the broker's affair; a header that can't be is not passed on.
#[test]
fn what_can_not_be_read() {
    let whole = frame(3, &EndTxnRequest::default().with_transactional_id(text(TRANSACTIONAL_ID).into()));
    for end in 0..whole.len() {
        match parse(&whole[..end]) {
            Ok(parsed) => assert!(end >= parsed.header_end, "{end}"),
            Err(_) => assert!(end < PREFIX + 8 + 2 + "a client".len(), "{end}"),
        }
    }
    let mut unknown = whole;
    unknown[PREFIX..PREFIX + 2].copy_from_slice(&999i16.to_be_bytes());
    let request = parse(&unknown).expect("a header").request;
    assert_eq!((request.api(), &*request.name()), (None, "API 999"));
    assert!(Bytes::from(unknown).len() > PREFIX);
}
