//! Addresses of brokers in answers: they are the proxy's, in every version.

use std::collections::{BTreeMap, BTreeSet};

use flechtwerk_conformance::client::{ANSWER, raw_frame};
use flechtwerk_conformance::{Client, text};
use flechtwerk_dev_broker::Api;
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, DescribeClusterRequest, FindCoordinatorRequest, MetadataRequest,
    ResponseHeader,
};
use kafka_protocol::protocol::Decodable;

use crate::setup::{Setup, address, of};

/// Addresses by node, as the proxy's answers tell them.
type Told = BTreeMap<i32, BTreeSet<String>>;

fn told(setup: &Setup) -> Told {
    let mut told = Told::new();
    let mut tell = |id: i32, host: &str, port: i32| {
        told.entry(id).or_default().insert(format!("{host}:{port}"));
    };
    let mut client = setup.worker();
    for version in versions(Api::Metadata) {
        for node in client.call_at(version, &MetadataRequest::default()).brokers {
            tell(node.node_id.0, &node.host, node.port);
        }
    }
    for version in versions(Api::FindCoordinator) {
        for (number, key_type) in (0..20).flat_map(|number| [(number, 0), (number, 1)]) {
            let key = text(&format!("key-{number}"));
            let mut request = FindCoordinatorRequest::default();
            if version >= 1 {
                request = request.with_key_type(key_type);
            }
            request = match version {
                4.. => request.with_coordinator_keys(vec![key, text("another")]),
                _ => request.with_key(key),
            };
            let answer = client.call_at(version, &request);
            if version < 4 {
                tell(answer.node_id.0, &answer.host, answer.port);
            }
            for node in answer.coordinators {
                tell(node.node_id.0, &node.host, node.port);
            }
        }
    }
    for version in versions(Api::DescribeCluster) {
        for node in client.call_at(version, &DescribeClusterRequest::default()).brokers {
            tell(node.broker_id.0, &node.host, node.port);
        }
    }
    told
}

fn versions(api: Api) -> std::ops::RangeInclusive<i16> {
    api.versions().0..=api.versions().1
}

/// Each of three nodes has one address, in all answers of all versions, and who goes there comes to the node.
#[test]
fn every_answer_names_the_proxy() {
    let setup = of(3);
    let told = told(&setup);
    assert_eq!(told.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(setup.proxy.nodes(), [1, 2, 3]);
    let brokers = setup.dev.bootstrap();
    for (id, addresses) in &told {
        assert_eq!(addresses.len(), 1, "one address for a node: {addresses:?}");
        let one = addresses.first().expect("an address");
        assert!(!brokers.contains(one.as_str()), "{one} is a broker's own");
        Client::connect(address(one)).named(&format!("to-{id}")).call(&MetadataRequest::default());
        let came = |request: &flechtwerk_dev_broker::Request| {
            request.client_id.as_deref() == Some(&format!("to-{id}")) && request.node == *id
        };
        assert_eq!(setup.dev.requests().count_where(came), 1, "node {id}");
    }
    assert_eq!(told[&1].first(), Some(&setup.proxy.bootstrap()), "a bootstrap address is a node's");
}

/// The same proxy address for a node, whatever happens: what a client has kept stays right.
#[test]
fn addresses_stay() {
    let setup = of(2);
    let before = told(&setup);
    setup.dev.node_down(2).expect("node 2");
    setup.dev.node_up(2).expect("node 2");
    assert_eq!(told(&setup), before);
}

/// ApiVersions of a version that nobody knows is answered as a broker does, and the client comes down.
#[test]
fn api_versions_that_are_too_new() {
    let setup = of(1);
    let mut client = Client::raw(setup.address());
    client.send_bytes(&raw_frame(18, 99, 7, 2, &[9, 9, 9]));
    let mut frame = client.receive_frame(ANSWER).expect("an answer");
    let header = ResponseHeader::decode(&mut frame, 0).expect("a header");
    let answer = ApiVersionsResponse::decode(&mut frame, 0).expect("an answer of version 0");
    assert_eq!((header.correlation_id, answer.error_code, frame.len()), (7, 35, 0));
    let own = answer.api_keys.iter().find(|api| api.api_key == 18).expect("ApiVersions");
    let again = ApiVersionsRequest::default()
        .with_client_software_name(text("proxy-tests"))
        .with_client_software_version(text("1"));
    assert_eq!(client.call_at(own.max_version, &again).error_code, 0);
}
