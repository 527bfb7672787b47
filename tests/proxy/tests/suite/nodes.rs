//! Nodes that go and come back, the broker's own and the proxy's picture of them.

use flechtwerk_conformance::client::ANSWER;
use flechtwerk_conformance::{Client, wait_for};
use flechtwerk_dev_broker::DevBroker;
use flechtwerk_proxy::{Proxy, ProxyError};
use kafka_protocol::messages::MetadataRequest;

use crate::setup::{Setup, WORKER, address, of, one};

/// The proxy's addresses by node.
fn addresses(setup: &Setup) -> Vec<(i32, String)> {
    let answer = setup.worker().call(&MetadataRequest::default());
    answer.brokers.iter().map(|one| (one.node_id.0, format!("{}:{}", one.host, one.port))).collect()
}

/// Whether a request at this address is answered.
fn answers(at: &str) -> bool {
    let mut client = Client::raw(address(at));
    client.send_at(1, &MetadataRequest::default());
    client.try_receive_at::<MetadataRequest>(1, ANSWER).is_ok()
}

/// A broker that is gone: its clients lose their connections, and new ones end at once. It comes back at the same address.
#[test]
fn a_broker_is_down_and_comes_back() {
    let setup = of(2);
    let nodes = addresses(&setup);
    let mut client = Client::connect(address(&nodes[1].1));
    setup.dev.node_down(2).expect("node 2");
    assert!(client.is_closed_within(ANSWER));
    assert!(!answers(&nodes[1].1));
    assert!(answers(&nodes[0].1));
    setup.dev.node_up(2).expect("node 2");
    assert!(answers(&nodes[1].1));
}

/// A proxy starts though a broker is down, and finds it when it comes.
#[test]
fn a_broker_that_is_not_there_yet() {
    let dev = DevBroker::builder().start().expect("a broker");
    let at = dev.address();
    dev.stop();
    let proxy = Proxy::start(&[at.to_string()]).expect("a proxy");
    assert!(!answers(&proxy.bootstrap()));
    assert!(proxy.nodes().is_empty());
    assert!(matches!(proxy.node_down(1), Err(ProxyError::UnknownNode { node: 1, .. })));
    let _dev = DevBroker::builder().listen(at.to_string()).start().expect("the broker again");
    assert!(answers(&proxy.bootstrap()));
    assert_eq!(proxy.nodes(), [1]);
}

/// The proxy takes a node away from all clients; the broker knows nothing of it.
#[test]
fn a_node_is_taken_down() {
    let setup = of(2);
    let nodes = addresses(&setup);
    let mut client = Client::connect(address(&nodes[1].1));
    setup.proxy.node_down(2).expect("node 2");
    assert!(client.is_closed_within(ANSWER));
    assert!(!answers(&nodes[1].1));
    assert_eq!([setup.proxy.refused(1), setup.proxy.refused(2)], [0, 1]);
    assert!(answers(&nodes[0].1));
    assert_eq!(setup.direct().call(&MetadataRequest::default()).brokers.len(), 2);
    setup.proxy.node_up(2).expect("node 2");
    assert!(answers(&nodes[1].1));
}

/// A client is separated from one node, then from all; other clients are not.
#[test]
fn a_client_is_separated() {
    let setup = of(2);
    let nodes = addresses(&setup);
    let connect = |client: &str, node: usize| {
        let mut client = Client::connect(address(&nodes[node].1)).named(client);
        client.call(&MetadataRequest::default());
        client
    };
    let (mut first, mut second) = (connect(WORKER, 0), connect(WORKER, 1));
    let from_one = setup.proxy.partition(WORKER, Some(2));
    assert!(second.is_closed_within(ANSWER));
    first.call(&MetadataRequest::default());
    let mut again = Client::connect(address(&nodes[1].1)).named(WORKER);
    again.send(&MetadataRequest::default());
    assert!(again.is_closed_within(ANSWER));
    connect("stranger", 1);

    let from_all = setup.proxy.partition(WORKER, None);
    assert!(first.is_closed_within(ANSWER));
    from_one.remove();
    from_all.remove();
    connect(WORKER, 0);
    connect(WORKER, 1);
}

/// Dropping the proxy closes everything.
#[test]
fn a_proxy_ends() {
    let setup = one();
    let mut client = setup.worker();
    let at = setup.proxy.bootstrap();
    drop(setup.proxy);
    assert!(client.is_closed_within(ANSWER));
    wait_for("nobody listens", || std::net::TcpStream::connect(&at).is_err());
}
