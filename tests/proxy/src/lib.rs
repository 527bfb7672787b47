//! A TCP proxy between Kafka clients and brokers, for tests: it understands frames both ways, and delays, holds, loses or cuts
//! what a rule names, before the broker has acted or after it has.
//!
//! The development broker can do the same to itself, and more. This works on any broker: what is proven with it holds on a
//! real Apache Kafka, too. Where it does the same thing as the faults of `flechtwerk-dev-broker`, it has the same name.
//!
//! ```no_run
//! use std::time::Duration;
//! use flechtwerk_proxy::{Action, ApiKey, Proxy, Rule};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let proxy = Proxy::start(&["127.0.0.1:9092"])?;
//! println!("bootstrap.servers={}", proxy.bootstrap());
//! // The second EndTxn of this client is carried out, and its answer is lost.
//! let lost = proxy.rule(Rule::on(ApiKey::EndTxn).client("worker").nth(2).then(Action::ApplyThenDropReply));
//! assert!(lost.wait(Duration::from_secs(60)), "no second EndTxn came");
//! for event in proxy.log() {
//!     println!("{event}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! All traffic passes it: addresses of brokers in answers are replaced by its own, one for each node, and so a node of which an
//! answer tells is known from then on. What else it has to know of the protocol is little: headers, the ids at the front of
//! requests, and the versions in the answer to ApiVersions, which it lowers where it could not find the addresses in newer ones.
//!
//! It speaks no TLS and no SASL: to connections with either it is blind.

mod connection;
mod fault;
mod frame;
mod log;
mod node;
mod request;
mod rewrite;
mod rule;
mod server;
mod walk;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

pub use fault::Fault;
pub use kafka_protocol::messages::ApiKey;
pub use log::Event;
pub use request::Request;
pub use rule::{Action, Rule, RuleBuilder};
pub(crate) use server::Shared;

/// Why a proxy can't do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// It can't be started.
    #[error("the proxy can't be started: check the limits of the machine for ports, files and threads")]
    Start(#[from] io::Error),
    /// There is no such node.
    #[error("no answer has told of a node {node}; known are {known:?}")]
    UnknownNode {
        /// The node that was named.
        node: i32,
        /// The nodes that there are.
        known: Vec<i32>,
    },
}

/// A running proxy. It stops when this is dropped, and closes all connections.
pub struct Proxy {
    shared: Arc<Shared>,
    bootstrap: String,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts one in front of the brokers with these addresses, `host:port` each, on free ports of the loopback interface.
    ///
    /// The other nodes of the cluster become known by what these answer; they are asked at once, and an error is nothing that
    /// keeps the proxy from starting: brokers may go and come.
    pub fn start(brokers: &[impl AsRef<str>]) -> Result<Proxy, ProxyError> {
        let shared = Arc::new(Shared::default());
        let mut listeners = Vec::new();
        for broker in brokers {
            listeners.push(shared.nodes.add(broker.as_ref().trim())?);
        }
        let addresses: Vec<String> = listeners.iter().map(|(node, _)| node.address.to_string()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serving = Arc::clone(&shared);
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            runtime.block_on(server::serve(serving, listeners, ready));
        })?;
        // It ends without a word only if its thread panics, which the tests that follow will notice.
        let _ = is_ready.recv();
        Ok(Proxy { shared, bootstrap: addresses.join(","), thread: Some(thread) })
    }

    /// What to give a client as `bootstrap.servers`.
    pub fn bootstrap(&self) -> String {
        self.bootstrap.clone()
    }

    /// Puts a rule in force. Of several that would hit a request the oldest does; all that match count it.
    pub fn rule(&self, rule: Rule) -> Fault {
        self.shared.rules.add(rule)
    }

    /// Closes all connections of a client, to all nodes. How many there were.
    pub fn drop_connections(&self, client_id: &str) -> usize {
        self.shared.log.asked_for(format!("drop all connections of client {client_id}"), None);
        self.shared.cut(|one| one.is_of(client_id))
    }

    /// Separates a client from a node, or from all, until the fault is [removed](Fault::remove): its connections are closed, and
    /// new ones with their first request.
    pub fn partition(&self, client_id: &str, node: Option<i32>) -> Fault {
        let mut rule = Rule::any().client(client_id).always();
        if let Some(node) = node {
            rule = rule.node(node);
        }
        // In this order, or a new connection might slip through.
        let fault = self.rule(rule.then(Action::DropConnection));
        self.shared.log.asked_for(format!("rule {}: separate client {client_id}", fault.number()), node);
        self.shared.cut(|one| one.is_of(client_id) && (node.is_none() || one.node.id() == node));
        fault
    }

    /// The ids of the nodes that are known.
    pub fn nodes(&self) -> Vec<i32> {
        let mut ids: Vec<i32> = self.shared.nodes.all().iter().filter_map(|node| node.id()).collect();
        ids.sort_unstable();
        ids
    }

    /// Takes a node down for all clients: its connections are closed, and new ones at once. The broker itself knows nothing of it.
    pub fn node_down(&self, id: i32) -> Result<(), ProxyError> {
        self.set_node(id, true)
    }

    /// Brings a node back.
    pub fn node_up(&self, id: i32) -> Result<(), ProxyError> {
        self.set_node(id, false)
    }

    /// How many connections to a node were closed at once because it was [down](Self::node_down).
    pub fn refused(&self, id: i32) -> u64 {
        self.shared.nodes.find(id).map_or(0, |node| node.refused())
    }

    fn set_node(&self, id: i32, down: bool) -> Result<(), ProxyError> {
        let unknown = || ProxyError::UnknownNode { node: id, known: self.nodes() };
        let node = self.shared.nodes.find(id).ok_or_else(unknown)?;
        self.shared.log.asked_for(if down { "node down" } else { "node up" }.to_owned(), Some(id));
        node.set_down(down);
        if down {
            self.shared.cut(|one| Arc::ptr_eq(&one.node, &node));
        }
        Ok(())
    }

    /// What it did and when, the oldest first; of very many the last ones.
    pub fn log(&self) -> Vec<Event> {
        self.shared.log.all()
    }

    /// How many requests came, by API and client id.
    pub fn requests(&self) -> BTreeMap<(String, String), u64> {
        self.shared.log.counts()
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("bootstrap", &self.bootstrap).finish_non_exhaustive()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the proxy's thread panicked");
        }
    }
}
