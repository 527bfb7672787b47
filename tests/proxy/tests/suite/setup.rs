//! A broker, a proxy in front of it, and clients of either.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use flechtwerk_conformance::{COMMITTED, Client, Producer};
use flechtwerk_dev_broker::{Api, DevBroker};
use flechtwerk_proxy::{ApiKey, Proxy, Rule, RuleBuilder};
use kafka_protocol::messages::EndTxnRequest;

/// How long things may take that take no time on a machine with nothing else to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The client id of the clients that rules are about.
pub(crate) const WORKER: &str = "worker";

pub(crate) struct Setup {
    pub(crate) proxy: Proxy,
    pub(crate) dev: DevBroker,
}

/// One node.
pub(crate) fn one() -> Setup {
    of(1)
}

/// That many nodes, of which the proxy is told the first.
pub(crate) fn of(nodes: i32) -> Setup {
    let dev = DevBroker::builder().nodes(nodes).start().expect("a broker");
    let proxy = Proxy::start(&[dev.address().to_string()]).expect("a proxy");
    Setup { proxy, dev }
}

impl Setup {
    /// Where the proxy stands for the first node.
    pub(crate) fn address(&self) -> SocketAddr {
        address(&self.proxy.bootstrap())
    }

    /// A client behind the proxy.
    pub(crate) fn worker(&self) -> Client {
        Client::connect(self.address()).named(WORKER)
    }

    /// A client that goes to the broker directly.
    pub(crate) fn direct(&self) -> Client {
        Client::connect(self.dev.address())
    }

    /// How many requests for this the broker has seen.
    pub(crate) fn seen(&self, api: Api) -> usize {
        self.dev.requests().count(api)
    }
}

/// The one that the text names.
pub(crate) fn address(text: &str) -> SocketAddr {
    text.to_socket_addrs().expect("an address").next().expect("an address")
}

/// A rule for requests of the worker.
pub(crate) fn on(api: ApiKey) -> RuleBuilder {
    Rule::on(api).client(WORKER)
}

/// A transaction with one record, `a`.
pub(crate) struct Open {
    pub(crate) client: Client,
    pub(crate) topic: String,
    pub(crate) producer: Producer,
}

impl Open {
    pub(crate) fn new(setup: &Setup) -> Open {
        let mut client = setup.worker();
        let topic = client.topic(1);
        let mut producer = client.transactional_producer();
        producer.write(&mut client, &topic, 0, &["a"]);
        Open { client, topic, producer }
    }

    /// The request that commits it.
    pub(crate) fn commit(&self) -> EndTxnRequest {
        EndTxnRequest::default()
            .with_transactional_id(flechtwerk_conformance::text(&self.producer.transactional_id).into())
            .with_producer_id(self.producer.id.into())
            .with_producer_epoch(self.producer.epoch)
            .with_committed(true)
    }

    /// Whether it is committed, as others see it.
    pub(crate) fn is_committed(&self, setup: &Setup) -> bool {
        setup.direct().values(&self.topic, 0, COMMITTED) == ["a"]
    }

    /// Whether the coordinator has not heard of its end.
    pub(crate) fn is_open(&self, setup: &Setup) -> bool {
        setup.direct().transaction_state(&self.producer.transactional_id) == "Ongoing"
    }
}
