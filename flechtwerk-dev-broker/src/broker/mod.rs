//! The broker as a whole: starting, what tests do to it, and stopping without leaving anything behind.
//!
//! All state is synchronous and behind one lock ([`state::State`]). One thread with an async runtime of its own serves all
//! connections, so that the broker can be used from sync and async code alike; it is joined when the broker is dropped.

mod clock;
pub(crate) mod config;
mod errors;
pub(crate) mod nodes;
mod server;
mod settings;
mod shared;
mod start;
pub(crate) mod state;
pub(crate) mod topics;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use uuid::Uuid;

pub(crate) use clock::wall;
pub(crate) use errors::Refusal;
pub use errors::{BrokerError, StartError};
pub use settings::{Builder, NewTopic};
pub(crate) use shared::Shared;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use start::for_fuzzing;
pub(crate) use start::random_uuid;
use state::Reach;

use crate::fault::{Fault, FaultBuilder, Held, Requests};

/// A running broker. It stops when this is dropped.
///
/// ```
/// # use flechtwerk_dev_broker::DevBroker;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let broker = DevBroker::builder().topic(("orders", 3)).start()?;
/// println!("bootstrap.servers={}", broker.bootstrap());
/// # Ok(())
/// # }
/// ```
pub struct DevBroker {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    thread: Option<JoinHandle<()>>,
}

impl DevBroker {
    /// A broker to start, with settings that can all be left as they are.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// What to give a client as `bootstrap.servers`: the addresses of all nodes.
    pub fn bootstrap(&self) -> String {
        self.shared.with(|state| {
            let all: Vec<String> =
                state.nodes.all().iter().map(|node| format!("{}:{}", node.host, node.port)).collect();
            all.join(",")
        })
    }

    /// Where the first node listens.
    pub fn address(&self) -> SocketAddr {
        self.addresses.first().copied().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Creates a topic.
    pub fn create_topic(&self, topic: impl Into<NewTopic>) -> Result<(), BrokerError> {
        let topic = topic.into();
        self.shared.with(|state| {
            state.topics.create(&topic, &state.nodes, &mut state.storage).map(|_| ()).map_err(|refusal| {
                BrokerError::Topic { topic: topic.name.clone(), code: refusal.code, reason: refusal.message }
            })
        })
    }

    /// Compacts all partitions of a topic now, up to its last batch, as if its segments were as small as can be. How many
    /// records it removed.
    pub fn compact(&self, topic: &str) -> Result<u64, BrokerError> {
        self.shared
            .with(|state| state.compact(topic, Reach::AllButLastBatch))
            .map(|report| report.records_removed)
    }

    /// Begins a fault: which requests it hits, and what happens to them.
    ///
    /// ```
    /// # use flechtwerk_dev_broker::{Api, DevBroker, ErrorCode};
    /// # let broker = DevBroker::builder().start()?;
    /// // The second EndTxn of this client is carried out, and its answer is lost.
    /// let lost = broker.fault().api(Api::EndTxn).client("worker").nth(2).apply_then_drop_reply();
    /// // InitProducerId is answered by an error three times, without effect.
    /// broker.fault().api(Api::InitProducerId).times(3).answer(ErrorCode::CONCURRENT_TRANSACTIONS);
    /// assert_eq!(lost.fired(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fault(&self) -> FaultBuilder {
        self.shared.faults.begin()
    }

    /// Keeps transactions of a transactional id from completing: they are decided, but their markers are not written and
    /// their producer is answered `CONCURRENT_TRANSACTIONS`, until this is released or dropped. It counts the transactions.
    pub fn hold_markers(&self, transactional_id: &str) -> Held {
        let fault = Fault::counter();
        self.shared.with(|state| state.hold_markers(transactional_id, fault.clone()));
        let shared = Arc::downgrade(&self.shared);
        let transactional_id = transactional_id.to_owned();
        Held::new(fault, move || {
            if let Some(shared) = shared.upgrade() {
                shared.with(|state| state.release_markers(&transactional_id));
            }
        })
    }

    /// The requests that came, for tests to look at.
    pub fn requests(&self) -> &Requests {
        &self.shared.requests
    }

    /// Takes a node down: its connections are closed and new ones are dropped at once, its partitions get another leader where
    /// they have another replica and are offline where not, its groups and transactional ids move to another node.
    pub fn node_down(&self, id: i32) -> Result<(), BrokerError> {
        self.set_node(id, false)
    }

    /// Brings a node back.
    pub fn node_up(&self, id: i32) -> Result<(), BrokerError> {
        self.set_node(id, true)
    }

    fn set_node(&self, id: i32, up: bool) -> Result<(), BrokerError> {
        self.shared.with(|state| {
            if !state.nodes.set_up(id, up) {
                return Err(BrokerError::UnknownNode { node: id });
            }
            Ok(state.topics.elect(&state.nodes, &mut state.storage)?)
        })?;
        tracing::info!(node = id, up, "node switched");
        self.shared.switch_node(id, up);
        Ok(())
    }

    /// Why the broker has ended by itself, if it has: its data folder can't be written any more, and what it can't keep it doesn't
    /// answer. The folder has all that was answered.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure()
    }

    /// Waits until the broker has ended by itself: see [`failure`](Self::failure).
    pub async fn failed(&self) -> String {
        self.shared.failed().await
    }

    /// Stops the broker, and waits until its thread, ports and files are gone. Dropping it does the same.
    pub fn stop(mut self) {
        self.end();
    }

    /// Ends the broker as if its process had been killed: what it had written is in the data folder, nothing is added.
    pub fn kill(mut self) {
        // Every change is written before it is answered, and an orderly end writes nothing more. So the two are the same, and
        // stay two: what a test means should be seen in it.
        self.end();
    }

    fn end(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the broker's thread panicked");
        }
    }
}

impl fmt::Debug for DevBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is in its logs is nobody's business.
        f.debug_struct("DevBroker").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Drop for DevBroker {
    fn drop(&mut self) {
        self.end();
    }
}

/// Kafka's way to write a uuid.
pub(crate) fn base64(id: Uuid) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = id.as_u128();
    (0..22u32)
        .map(|digit| {
            // 128 bits in 22 digits of 6: the last has 2 bits, and 4 zeroes behind them.
            let index = match 122u32.checked_sub(digit * 6) {
                Some(shift) => (bits >> shift) & 63,
                None => (bits << 4) & 63,
            };
            ALPHABET.get(usize::try_from(index).unwrap_or_default()).map_or('A', |byte| char::from(*byte))
        })
        .collect()
}
