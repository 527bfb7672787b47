//! The broker that a check asks: one in the process, or the real one that the environment names.

use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flechtwerk_dev_broker::{Builder, DevBroker};
use kafka_protocol::messages::DescribeGroupsRequest;
use kafka_protocol::messages::DescribeTransactionsRequest;
use kafka_protocol::messages::FindCoordinatorRequest;

use crate::calls::transactions::Init;
use crate::client::{Client, text};
use crate::{Code, code, wait_for};

/// Names the address of a real Kafka: `host:port`, or a list, of which the first is asked.
pub const VARIABLE: &str = "FLECHTWERK_TEST_BROKERS";

/// A running broker.
#[derive(Debug)]
pub struct Broker {
    address: SocketAddr,
    dev: Option<DevBroker>,
}

impl Broker {
    /// The real Kafka that the environment names, or else a development broker of this check's own, which ends with it.
    pub fn get() -> Rc<Broker> {
        static REAL: LazyLock<Option<SocketAddr>> = LazyLock::new(|| {
            let list = std::env::var(VARIABLE).ok()?;
            let first = list.split(',').next().unwrap_or_default();
            let found = first.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
            let address = found.unwrap_or_else(|| panic!("{VARIABLE} must be host:port, but is {list}"));
            warm_up(address);
            Some(address)
        });
        // Each check runs on a thread of its own.
        thread_local! {
            static OF_THIS_CHECK: Rc<Broker> = Rc::new(match *REAL {
                Some(address) => Broker { address, dev: None },
                None => Broker::dev(DevBroker::builder()),
            });
        }
        OF_THIS_CHECK.with(Rc::clone)
    }

    /// A development broker that was built in a certain way, for the checks that are about it alone.
    #[track_caller]
    pub fn dev(builder: Builder) -> Broker {
        let short = Duration::from_secs(1);
        let dev = builder.session_timeouts(short, Duration::from_secs(1800)).start().expect("a broker");
        Broker { address: dev.address(), dev: Some(dev) }
    }

    /// The addresses of all nodes that the environment names; none where it names no real Kafka.
    pub fn real_nodes() -> Vec<SocketAddr> {
        let list = std::env::var(VARIABLE).unwrap_or_default();
        list.split(',').filter_map(|one| one.to_socket_addrs().ok()?.next()).collect()
    }

    /// The development broker, unless this is a real Kafka.
    pub fn as_dev(&self) -> Option<&DevBroker> {
        self.dev.as_ref()
    }

    /// The development broker itself, to end it in its own ways.
    pub fn into_dev(self) -> DevBroker {
        self.dev.expect("a development broker")
    }

    /// Whether this is a real Kafka.
    pub fn is_real(&self) -> bool {
        self.dev.is_none()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new connection.
    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// A new connection on which nothing was asked.
    pub fn raw(&self) -> Client {
        Client::raw(self.address)
    }
}

/// A name that no other check has.
pub fn unique(what: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    static RUN: LazyLock<u64> =
        LazyLock::new(|| crate::batch::now() as u64 ^ u64::from(std::process::id()) << 42);
    format!("{what}-{:x}-{}", *RUN, COUNT.fetch_add(1, Ordering::SeqCst))
}

/// A fresh cluster makes its internal topics when it is first asked for a coordinator, and says for a while that it is not ready.
fn warm_up(address: SocketAddr) {
    let mut client = Client::connect(address);
    // Ids are given out in blocks, the first of which has to be asked for.
    wait_for("producer ids are given out", || client.init_producer("", Init::default()).is_ok());
    let waiting = [Code::CoordinatorNotAvailable, Code::CoordinatorLoadInProgress, Code::NotCoordinator];
    for number in 0..30 {
        let name = text(&format!("warm-up-{number}"));
        let mut coordinates = |key_type: i8| {
            let find = FindCoordinatorRequest::default().with_key(name.clone()).with_key_type(key_type);
            let mut here = false;
            wait_for("coordinators are found", || {
                let answer = client.call(&find);
                here = answer.port == i32::from(address.port());
                answer.error_code == 0
            });
            here
        };
        let (of_group, of_transaction) = (coordinates(0), coordinates(1));
        let groups = DescribeGroupsRequest::default().with_groups(vec![name.clone().into()]);
        wait_for("group coordinators are ready", || {
            let ready = |error| !waiting.map(Err).contains(&code(error));
            !of_group || client.call(&groups).groups.iter().all(|group| ready(group.error_code))
        });
        let transactions = DescribeTransactionsRequest::default().with_transactional_ids(vec![name.into()]);
        wait_for("transaction coordinators are ready", || {
            let ready = |error| !waiting.map(Err).contains(&code(error));
            !of_transaction
                || client.call(&transactions).transaction_states.iter().all(|one| ready(one.error_code))
        });
    }
}
