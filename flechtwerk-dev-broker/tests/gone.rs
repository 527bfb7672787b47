//! Clients that go away while a request of theirs waits: nothing of it may stay until its deadline. This file has one test,
//! because it counts the files that the process has open.

mod support;

use bytes::Bytes;
use flechtwerk_dev_broker::{Api, DevBroker, ErrorCode};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::{JoinGroupRequest, MetadataRequest, SyncGroupRequest};
use support::{Client, PATIENCE, batch, fetch, produce, text, until};

const LONG_MS: i32 = 600_000;

fn join(member_id: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(b"metadata"));
    JoinGroupRequest::default()
        .with_group_id(text("group").into())
        .with_session_timeout_ms(LONG_MS)
        .with_rebalance_timeout_ms(LONG_MS)
        .with_member_id(text(member_id))
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

fn sync(member_id: &str, generation: i32) -> SyncGroupRequest {
    SyncGroupRequest::default()
        .with_group_id(text("group").into())
        .with_member_id(text(member_id))
        .with_generation_id(generation)
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_client_that_leaves_takes_its_waiting_requests_along() {
    let broker = DevBroker::builder().topic(("orders", 1)).start().unwrap();
    let connect = || Client::connect(broker.address());
    let came = |api: Api, count: usize| {
        until("the requests have come", || broker.requests().count(api) == count);
    };

    // Two members in a generation whose leader has not yet said who gets what.
    let (mut one, mut two) = (connect(), connect());
    let first = one.call(3, &join(""));
    two.send(3, &join("")).unwrap();
    came(Api::JoinGroup, 2);
    one.send(3, &join(&first.member_id)).unwrap();
    let second = two.answer::<JoinGroupRequest>(3).unwrap();
    let rejoined = one.answer::<JoinGroupRequest>(3).unwrap();
    assert_eq!(second.generation_id, rejoined.generation_id);
    let alone = open_files();

    let mut leaving: Vec<Client> = (0..7).map(|_| connect()).collect();
    for client in &mut leaving {
        client.send(11, &fetch("orders", 0, 0, LONG_MS)).unwrap();
    }
    // Requests behind one that waits change nothing.
    for client in leaving.iter_mut().take(3) {
        client.send(9, &MetadataRequest::default().with_topics(None)).unwrap();
    }
    came(Api::Fetch, 7);
    assert_eq!(open_files(), alone + 14);
    drop(leaving);
    until("nothing is left of the fetches", || open_files() == alone);
    assert_eq!(broker.requests().count(Api::Metadata), 0);

    let mut follower = connect();
    follower.send(3, &sync(&second.member_id, second.generation_id)).unwrap();
    came(Api::SyncGroup, 1);
    drop(follower);
    until("nothing is left of the SyncGroup", || open_files() == alone);

    // The others would have to join again first.
    let mut newcomer = connect();
    newcomer.send(3, &join("")).unwrap();
    came(Api::JoinGroup, 4);
    drop(newcomer);
    until("nothing is left of the JoinGroup", || open_files() == alone);

    // Who stays is answered, in order.
    let mut staying = connect();
    staying.send(11, &fetch("orders", 0, 0, LONG_MS)).unwrap();
    came(Api::Fetch, 8);
    let correlation_id = staying.correlation_id();
    staying.send(9, &MetadataRequest::default().with_topics(None)).unwrap();
    assert!(!broker.requests().wait_for(std::time::Duration::ZERO, |one| one.api == Api::Metadata));
    one.call(9, &produce("orders", 0, batch(b"x")));
    let fetched = staying.answer_to::<kafka_protocol::messages::FetchRequest>(correlation_id, 11).unwrap();
    assert_eq!(fetched.responses[0].partitions[0].high_watermark, 1);
    let metadata = staying.answer::<MetadataRequest>(9).unwrap();
    assert_eq!(metadata.topics[0].error_code, ErrorCode::NONE.code());
    assert!(broker.requests().wait_for(PATIENCE, |one| one.api == Api::Metadata));
}
