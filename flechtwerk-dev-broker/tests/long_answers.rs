//! Requests that name the same thing over and over: a long answer is sent or its connection closed, and memory has a bound either way.

#[path = "support/program.rs"]
mod program;
mod support;

use std::fs::File;
use std::net::SocketAddr;

use bytes::Bytes;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, DescribeGroupsRequest, DescribeProducersRequest, DescribeTransactionsRequest,
    InitProducerIdRequest, JoinGroupRequest, ListTransactionsRequest, MetadataRequest, ProducerId,
};
use kafka_protocol::protocol::Request;
use uuid::Uuid;

use program::{Running, program};
use support::records::batch_of;
use support::*;

/// Nearly as many items as a request may have.
const MANY: usize = 190_000;
const MAX_ANSWER: u64 = 100 * 1024 * 1024;

/// A broker as a process, whose memory can be told from the test's.
struct Broker {
    running: Running,
    said: tempfile::NamedTempFile,
}

impl Broker {
    fn start() -> Broker {
        let said = tempfile::NamedTempFile::new().unwrap();
        let mut command = program();
        command.args(["--listen", "127.0.0.1:0", "--topic", "abc:1", "--topic", "big:10000"]);
        let running = Running::of(command.stderr(File::create(said.path()).unwrap()));
        Broker { running, said }
    }

    fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// Several clients ask this at once, and none reads before all have asked: each connection is closed, or its answer sent.
    fn survives<R: Request + Clone>(&self, version: i16, request: &R) -> usize {
        let mut clients: Vec<Client> = (0..4).map(|_| Client::connect(self.address())).collect();
        for client in &mut clients {
            client.send(version, request).unwrap();
        }
        let answered = clients.iter_mut().map(Client::frame).filter(Result::is_ok).count();
        // What an answer is put together from takes several times the memory of its bytes.
        let peak = self.running.status("VmHWM") * 1024;
        assert!(peak < 8 * MAX_ANSWER, "{} MiB", peak / 1024 / 1024);
        Client::connect(self.address()).call(0, &MetadataRequest::default().with_topics(Some(Vec::new())));
        answered
    }

    /// That is closed with a line in the log that says why.
    fn refuses<R: Request + Clone>(&self, version: i16, request: &R) {
        assert_eq!(self.survives(version, request), 0);
        let said = std::fs::read_to_string(self.said.path()).unwrap();
        let told =
            said.lines().filter(|line| line.contains(&format!("answer: longer than {MAX_ANSWER} bytes")));
        assert_eq!(told.count(), 4, "{said}");
    }
}

#[test]
fn a_group_with_many_members_named_often() {
    let broker = Broker::start();
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(&[7; 100]));
    let join = JoinGroupRequest::default()
        .with_group_id(text("group").into())
        .with_session_timeout_ms(60_000)
        .with_rebalance_timeout_ms(60_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    let mut members: Vec<Client> = (0..100).map(|_| Client::connect(broker.address())).collect();
    for member in &mut members {
        member.send(3, &join).unwrap();
    }
    let request = |times| DescribeGroupsRequest::default().with_groups(vec![text("group").into(); times]);
    let mut client = Client::connect(broker.address());
    until("all have joined", || client.call(0, &request(1)).groups[0].members.len() == 100);
    assert_eq!(client.call(0, &request(3)).groups.len(), 3);
    broker.refuses(0, &request(MANY));
}

#[test]
fn a_partition_with_many_producers_named_often() {
    let broker = Broker::start();
    let mut client = Client::connect(broker.address());
    for id in 0..1_000 {
        let batch = batch_of(Some((id, 0, 0)), &[(None, b"v")]);
        // Not in a transaction: what is asked for is the producers alone.
        let mut plain = batch.to_vec();
        plain[22] &= !0x10;
        let crc = crc32c::crc32c(&plain[21..]);
        plain[17..21].copy_from_slice(&crc.to_be_bytes());
        let answer = client.call(7, &produce("abc", 0, plain.into()));
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    }
    let request = |topics, times| {
        let topic = TopicRequest::default().with_name(topic("abc")).with_partition_indexes(vec![0; times]);
        DescribeProducersRequest::default().with_topics(vec![topic; topics])
    };
    let answer = client.call(0, &request(2, 3));
    let lengths =
        answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.active_producers.len());
    assert_eq!(lengths.collect::<Vec<_>>(), [1_000; 6]);
    broker.refuses(0, &request(1, MANY));
}

#[test]
fn a_transaction_with_many_partitions_named_often() {
    let broker = Broker::start();
    let mut client = Client::connect(broker.address());
    let init = InitProducerIdRequest::default()
        .with_transactional_id(Some(text("tx").into()))
        .with_transaction_timeout_ms(600_000);
    let producer = client.call(0, &init);
    let topics =
        AddPartitionsToTxnTopic::default().with_name(topic("big")).with_partitions((0..10_000).collect());
    let add = AddPartitionsToTxnRequest::default()
        .with_v3_and_below_transactional_id(text("tx").into())
        .with_v3_and_below_producer_id(producer.producer_id)
        .with_v3_and_below_producer_epoch(producer.producer_epoch)
        .with_v3_and_below_topics(vec![topics]);
    let added = client.call(0, &add);
    assert_eq!(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code, 0);
    assert_ne!(producer.producer_id, ProducerId(-1));
    let request =
        |times| DescribeTransactionsRequest::default().with_transactional_ids(vec![text("tx").into(); times]);
    assert_eq!(client.call(0, &request(3)).transaction_states.len(), 3);
    broker.refuses(0, &request(MANY));
}

#[test]
fn a_topic_named_with_many_ids_is_described_once() {
    let broker = Broker::start();
    let named = |id: usize| {
        let id = Uuid::from_u128(id as u128);
        MetadataRequestTopic::default().with_name(Some(topic("big"))).with_topic_id(id)
    };
    let request = MetadataRequest::default().with_topics(Some((1..100_000).map(named).collect()));
    assert_eq!(Client::connect(broker.address()).call(12, &request).topics.len(), 1);
    assert_eq!(broker.survives(12, &request), 4);
}

#[test]
fn all_there_is_may_be_too_much_for_one_answer() {
    let broker = Broker::start();
    let mut client = Client::connect(broker.address());
    for number in 0..4_000 {
        let init = InitProducerIdRequest::default()
            .with_transactional_id(Some(text(&format!("{number:0>30000}")).into()))
            .with_transaction_timeout_ms(60_000);
        assert_eq!(client.call(0, &init).error_code, 0);
    }
    let of = |id| ListTransactionsRequest::default().with_producer_id_filters(vec![ProducerId(id)]);
    assert_eq!(client.call(0, &of(0)).transaction_states.len(), 1);
    broker.refuses(0, &ListTransactionsRequest::default());
}
