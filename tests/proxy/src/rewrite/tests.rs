//! Against `kafka-protocol`: what it writes is rewritten, and read by it again. All else in the answer is as it was.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::metadata_response::{MetadataResponseBroker, MetadataResponseTopic};
use kafka_protocol::messages::{
    ApiVersionsResponse, DescribeClusterResponse, FetchResponse, FindCoordinatorResponse, MetadataResponse,
    ProduceResponse, ResponseHeader, ShareAcknowledgeResponse, ShareFetchResponse, fetch_response,
    produce_response, share_acknowledge_response, share_fetch_response,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use proptest::prelude::*;

use super::*;

const CORRELATION_ID: i32 = 77;

/// Host and port of a node, as the broker tells them and as clients are to be told.
fn told(id: i32, rewritten: bool) -> (StrBytes, i32) {
    let host = if rewritten { "127.0.0.1".to_owned() } else { format!("broker-{id}.some.example") };
    (StrBytes::from_string(host), if rewritten { 20_000 + id } else { 9_092 })
}

fn addresses(id: i32, host: &str, port: u16) -> io::Result<SocketAddr> {
    assert_eq!((host, i32::from(port)), (&*told(id, false).0, told(id, false).1));
    Ok(SocketAddr::from(([127, 0, 0, 1], 20_000 + id as u16)))
}

/// The frame of an answer.
fn frame<T: Encodable + HeaderVersion>(version: i16, answer: &T) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.put_i32(0);
    let header = ResponseHeader::default().with_correlation_id(CORRELATION_ID);
    header.encode(&mut bytes, T::header_version(version)).expect("a header");
    answer.encode(&mut bytes, version).expect("an answer");
    let mut frame = bytes.to_vec();
    set_length(&mut frame);
    frame
}

fn rewrite(api: ApiKey, version: i16, mut frame: Vec<u8>) -> Result<Vec<u8>, RewriteError> {
    answer(Plan::of(api as i16, version), &mut frame, &mut addresses)?;
    Ok(frame)
}

/// Rewrites what the broker tells, and it is what clients are to be told. `make`: the answer of a version with either's
/// addresses.
fn check<T>(api: ApiKey, oldest: i16, make: impl Fn(i16, bool) -> T)
where
    T: Encodable + Decodable + HeaderVersion + PartialEq + std::fmt::Debug,
{
    for version in oldest..=api.valid_versions().max {
        let broker = frame(version, &make(version, false));
        let rewritten = rewrite(api, version, broker.clone()).expect("it is well-formed");
        assert_eq!(rewritten, frame(version, &make(version, true)), "{api:?} v{version}");
        assert_ne!(rewritten, broker, "{api:?} v{version} names addresses");
        let mut bytes = Bytes::from(rewritten).slice(PREFIX..);
        let header = ResponseHeader::decode(&mut bytes, T::header_version(version)).expect("a header");
        assert_eq!(header.correlation_id, CORRELATION_ID);
        let read = T::decode(&mut bytes, version).expect("an answer");
        assert_eq!((read, bytes.len()), (make(version, true), 0), "{api:?} v{version}");
        // Cut off anywhere: an error, or what is missing lies behind all addresses. Never a panic.
        let all = asked(api, version, broker.clone()).expect("it is well-formed");
        for end in PREFIX + 4..broker.len() {
            if let Ok(asked) = asked(api, version, broker[..end].to_vec()) {
                assert_eq!(asked, all, "{api:?} v{version}, cut off at {end} of {}", broker.len());
            }
        }
    }
}

/// How many addresses are replaced.
fn asked(api: ApiKey, version: i16, mut frame: Vec<u8>) -> Result<usize, RewriteError> {
    let mut asked = 0;
    let mut addresses = |_: i32, _: &str, _: u16| {
        asked += 1;
        Ok(SocketAddr::from(([127, 0, 0, 1], 1)))
    };
    answer(Plan::of(api as i16, version), &mut frame, &mut addresses)?;
    Ok(asked)
}

fn text(value: &'static str) -> StrBytes {
    StrBytes::from_static_str(value)
}

fn metadata_of(version: i16, rewritten: bool) -> MetadataResponse {
    let node = |id: i32| {
        let (host, port) = told(id, rewritten);
        let node = MetadataResponseBroker::default().with_node_id(id.into()).with_host(host).with_port(port);
        if version >= 1 { node.with_rack(Some(text("rack"))) } else { node }
    };
    let topic = MetadataResponseTopic::default().with_name(Some(text("a topic").into()));
    MetadataResponse::default().with_brokers(vec![node(1), node(2)]).with_topics(vec![topic])
}

#[test]
fn metadata_of_all_versions() {
    check(ApiKey::Metadata, 0, metadata_of);
}

fn coordinators_of(version: i16, rewritten: bool) -> FindCoordinatorResponse {
    let (host, port) = told(3, rewritten);
    let answer = FindCoordinatorResponse::default();
    if version < 4 {
        return answer.with_node_id(3.into()).with_host(host).with_port(port);
    }
    let found = Coordinator::default().with_key(text("key")).with_node_id(3.into());
    let missing = Coordinator::default().with_node_id((-1).into()).with_port(-1).with_error_code(15);
    answer.with_coordinators(vec![missing.clone(), found.with_host(host).with_port(port), missing])
}

#[test]
fn coordinators_of_all_versions() {
    check(ApiKey::FindCoordinator, 0, coordinators_of);
}

#[test]
fn a_coordinator_that_is_not_to_be_found() {
    for version in 0..4 {
        let answer =
            FindCoordinatorResponse::default().with_node_id((-1).into()).with_port(-1).with_error_code(15);
        let frame = frame(version, &answer);
        assert_eq!(rewrite(ApiKey::FindCoordinator, version, frame.clone()).expect("well-formed"), frame);
    }
}

fn cluster_of(_: i16, rewritten: bool) -> DescribeClusterResponse {
    let node = |id: i32| {
        let (host, port) = told(id, rewritten);
        let node = DescribeClusterBroker::default().with_broker_id(id.into()).with_host(host).with_port(port);
        node.with_rack(Some(text("rack")))
    };
    let answer = DescribeClusterResponse::default().with_cluster_id(text("cluster"));
    answer.with_brokers(vec![node(1), node(2)])
}

#[test]
fn clusters_of_all_versions() {
    check(ApiKey::DescribeCluster, 0, cluster_of);
}

/// Controllers are no brokers, though they have their ids.
#[test]
fn a_cluster_of_controllers() {
    for version in 1..=2 {
        let frame = frame(version, &cluster_of(version, false).with_endpoint_type(2));
        assert_eq!(rewrite(ApiKey::DescribeCluster, version, frame.clone()).expect("well-formed"), frame);
    }
}

fn produced_of(version: i16, rewritten: bool) -> ProduceResponse {
    use produce_response::{
        BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
        TopicProduceResponse,
    };
    let endpoint = |id: i32| {
        let (host, port) = told(id, rewritten);
        NodeEndpoint::default().with_node_id(id.into()).with_host(host).with_port(port)
    };
    let error = BatchIndexAndErrorMessage::default().with_batch_index_error_message(Some(text("bad")));
    let leader = LeaderIdAndEpoch::default().with_leader_id(2.into()).with_leader_epoch(5);
    let partition = |index| {
        let partition = PartitionProduceResponse::default().with_index(index).with_error_code(6);
        let partition = partition.with_record_errors(vec![error.clone(), error.clone()]);
        partition.with_error_message(Some(text("moved"))).with_current_leader(leader.clone())
    };
    let mut topic =
        TopicProduceResponse::default().with_partition_responses(vec![partition(0), partition(1)]);
    if version < 13 {
        topic = topic.with_name(text("a topic").into());
    }
    ProduceResponse::default()
        .with_responses(vec![topic.clone(), topic])
        .with_node_endpoints((1..=20).map(endpoint).collect())
}

#[test]
fn produce_of_all_versions_with_addresses() {
    check(ApiKey::Produce, 10, produced_of);
}

fn fetched_of(_: i16, rewritten: bool) -> FetchResponse {
    use fetch_response::{
        AbortedTransaction, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
    };
    let endpoint = |id: i32| {
        let (host, port) = told(id, rewritten);
        NodeEndpoint::default().with_node_id(id.into()).with_host(host).with_port(port)
    };
    let aborted = AbortedTransaction::default().with_first_offset(4);
    let leader = LeaderIdAndEpoch::default().with_leader_id(2.into()).with_leader_epoch(5);
    let full = PartitionData::default()
        .with_aborted_transactions(Some(vec![aborted.clone(), aborted]))
        .with_records(Some(Bytes::from_static(&[7; 300])))
        .with_current_leader(leader);
    let empty = PartitionData::default().with_partition_index(1).with_aborted_transactions(None);
    let topic = FetchableTopicResponse::default().with_partitions(vec![full, empty]);
    FetchResponse::default()
        .with_responses(vec![topic.clone(), topic])
        .with_node_endpoints(vec![endpoint(1), endpoint(2)])
}

#[test]
fn fetch_of_all_versions_with_addresses() {
    check(ApiKey::Fetch, 16, fetched_of);
}

fn shared_of(_: i16, rewritten: bool) -> ShareFetchResponse {
    use share_fetch_response::{AcquiredRecords, NodeEndpoint, PartitionData, ShareFetchableTopicResponse};
    let (host, port) = told(1, rewritten);
    let partition = PartitionData::default()
        .with_error_message(Some(text("moved")))
        .with_records(Some(Bytes::from_static(&[7; 300])))
        .with_acquired_records(vec![AcquiredRecords::default(), AcquiredRecords::default()]);
    let topic = ShareFetchableTopicResponse::default().with_partitions(vec![partition.clone(), partition]);
    let endpoint = NodeEndpoint::default().with_node_id(1.into()).with_host(host).with_port(port);
    ShareFetchResponse::default().with_responses(vec![topic]).with_node_endpoints(vec![endpoint])
}

#[test]
fn share_fetch() {
    check(ApiKey::ShareFetch, 1, shared_of);
}

#[test]
fn share_acknowledge() {
    use share_acknowledge_response::{NodeEndpoint, PartitionData, ShareAcknowledgeTopicResponse};
    check(ApiKey::ShareAcknowledge, 1, |_, rewritten| {
        let (host, port) = told(1, rewritten);
        let partition = PartitionData::default().with_error_message(Some(text("moved")));
        let topic =
            ShareAcknowledgeTopicResponse::default().with_partitions(vec![partition.clone(), partition]);
        let endpoint = NodeEndpoint::default().with_node_id(1.into()).with_host(host).with_port(port);
        ShareAcknowledgeResponse::default().with_responses(vec![topic]).with_node_endpoints(vec![endpoint])
    });
}

/// Versions without addresses, and APIs without any, are not even looked at.
#[test]
fn what_names_no_address() {
    for (api, version) in [(ApiKey::Produce, 9), (ApiKey::Fetch, 15), (ApiKey::Heartbeat, 4)] {
        assert_eq!(Plan::of(api as i16, version), Plan::Pass);
    }
    assert_eq!(Plan::of(i16::MAX, 0), Plan::Pass);
    assert_eq!(Plan::of(ApiKey::Metadata as i16, 14), Plan::TooNew);
    assert_eq!(Plan::of(ApiKey::Heartbeat as i16, 99), Plan::Pass);
}

/// Only what could not be rewritten is lowered, and not below what the broker knows.
#[test]
fn versions_are_lowered() {
    let of = |api: ApiKey, min, max| {
        ApiVersion::default().with_api_key(api as i16).with_min_version(min).with_max_version(max)
    };
    let all = |metadata, api_versions| {
        let unknown = ApiVersion::default().with_api_key(30_000).with_max_version(9);
        ApiVersionsResponse::default().with_api_keys(vec![
            of(ApiKey::Metadata, 0, metadata),
            of(ApiKey::Fetch, 4, 11),
            of(ApiKey::EndTxn, 0, 99),
            of(ApiKey::Produce, 90, 99),
            unknown,
            of(ApiKey::ApiVersions, 0, api_versions),
        ])
    };
    for version in 0..=4 {
        let rewritten = rewrite(ApiKey::ApiVersions, version, frame(version, &all(99, 5)));
        assert_eq!(rewritten.expect("well-formed"), frame(version, &all(13, 4)), "v{version}");
    }
    // Of a broker that knows no version as new as that: it answers in version 0.
    let answer = frame(0, &all(99, 5).with_error_code(UNSUPPORTED_VERSION));
    let rewritten = rewrite(ApiKey::ApiVersions, 4, answer).expect("well-formed");
    assert_eq!(rewritten, frame(0, &all(13, 4).with_error_code(UNSUPPORTED_VERSION)));
}

/// ApiVersions of a version that is not known here is asked for as version 0, in the client's name, and answered as if the broker
/// did not know the version either, though it does.
#[test]
fn api_versions_that_are_too_new() {
    use kafka_protocol::messages::{ApiVersionsRequest, RequestHeader};
    let plan = Plan::of(ApiKey::ApiVersions as i16, 5);
    assert_eq!(plan, Plan::AskForOldest);
    let request = |version: i16, header_version: i16, body: &[u8]| {
        let header = RequestHeader::default()
            .with_request_api_key(ApiKey::ApiVersions as i16)
            .with_request_api_version(version)
            .with_correlation_id(CORRELATION_ID)
            .with_client_id(Some(text("a client")));
        let mut bytes = BytesMut::new();
        bytes.put_i32(0);
        header.encode(&mut bytes, header_version).expect("a header");
        bytes.put_slice(body);
        let mut frame = bytes.to_vec();
        set_length(&mut frame);
        frame
    };
    let mut frame = request(5, 2, b"whatever it has");
    let header_end = crate::request::parse(&frame).expect("a header").header_end;
    ask_for_oldest(&mut frame, header_end);
    assert_eq!(frame, request(0, ApiVersionsRequest::header_version(0), &[]));

    let known = |max| {
        let own = ApiVersion::default().with_api_key(ApiKey::ApiVersions as i16).with_max_version(max);
        ApiVersionsResponse::default().with_api_keys(vec![own])
    };
    let mut answered = self::frame(0, &known(9));
    answer(plan, &mut answered, &mut addresses).expect("well-formed");
    assert_eq!(answered, self::frame(0, &known(4).with_error_code(UNSUPPORTED_VERSION)));
}

/// A walk through tagged fields that nobody knows, in front of those that count.
#[test]
fn unknown_tagged_fields() {
    for version in [16, 18] {
        let with = |rewritten| {
            let mut answer = fetched_of(version, rewritten);
            answer.unknown_tagged_fields.insert(9, Bytes::from_static(&[1; 200]));
            answer.responses[0].unknown_tagged_fields.insert(3, Bytes::from_static(b"x"));
            answer.node_endpoints[0].unknown_tagged_fields.insert(0, Bytes::new());
            answer
        };
        let rewritten = rewrite(ApiKey::Fetch, version, frame(version, &with(false)));
        assert_eq!(rewritten.expect("well-formed"), frame(version, &with(true)));
    }
}

/// An answer with addresses, of any version that has them.
fn any_answer() -> impl Strategy<Value = (ApiKey, i16, Vec<u8>)> {
    prop_oneof![
        (0..=13i16).prop_map(|v| (ApiKey::Metadata, v, frame(v, &metadata_of(v, false)))),
        (0..=6i16).prop_map(|v| (ApiKey::FindCoordinator, v, frame(v, &coordinators_of(v, false)))),
        (0..=2i16).prop_map(|v| (ApiKey::DescribeCluster, v, frame(v, &cluster_of(v, false)))),
        (10..=13i16).prop_map(|v| (ApiKey::Produce, v, frame(v, &produced_of(v, false)))),
        (16..=18i16).prop_map(|v| (ApiKey::Fetch, v, frame(v, &fetched_of(v, false)))),
        (1..=1i16).prop_map(|v| (ApiKey::ShareFetch, v, frame(v, &shared_of(v, false)))),
    ]
}

proptest! {
    /// Bytes that are changed anywhere never panic, and never make more of the answer than is there.
    #[test]
    fn damaged_answers(
        (api, version, mut frame) in any_answer(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let length = frame.len();
        for (place, byte) in changes {
            let place = PREFIX + place.index(length - PREFIX);
            frame[place] = byte;
        }
        if let Ok(asked) = asked(api, version, frame) {
            prop_assert!(asked <= length / 8, "{asked} addresses in {length} bytes");
        }
    }
}
