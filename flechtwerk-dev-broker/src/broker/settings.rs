//! What a broker is started with.

use std::path::PathBuf;
use std::time::Duration;

use super::clock::millis;
use super::{DevBroker, StartError};
use crate::coordinator::Millis;
use crate::coordinator::group::GroupSettings;
use crate::coordinator::transaction::TransactionSettings;

/// A topic to create.
///
/// ```
/// # use flechtwerk_dev_broker::NewTopic;
/// let changelog = NewTopic::new("totals", 3).config("cleanup.policy", "compact");
/// ```
#[derive(Debug, Clone)]
pub struct NewTopic {
    pub(crate) name: String,
    pub(crate) partitions: i32,
    pub(crate) replication: i16,
    pub(crate) configs: Vec<(String, String)>,
}

impl NewTopic {
    /// A topic with so many partitions.
    pub fn new(name: impl Into<String>, partitions: i32) -> NewTopic {
        NewTopic { name: name.into(), partitions, replication: 1, configs: Vec::new() }
    }

    /// On how many of the virtual nodes it lies: so many may be down before it is offline. One unless said.
    pub fn replication(mut self, factor: i16) -> NewTopic {
        self.replication = factor;
        self
    }

    /// Sets one of Kafka's topic settings.
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> NewTopic {
        self.configs.push((name.into(), value.into()));
        self
    }
}

impl<N: Into<String>> From<(N, i32)> for NewTopic {
    fn from((name, partitions): (N, i32)) -> NewTopic {
        NewTopic::new(name, partitions)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) listen: String,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) fsync: bool,
    pub(crate) topics: Vec<NewTopic>,
    pub(crate) nodes: i32,
    pub(crate) auto_create_topics: bool,
    pub(crate) compact_every: Option<Duration>,
    pub(crate) groups: GroupSettings,
    pub(crate) transactions: TransactionSettings,
    pub(crate) max_frame: usize,
    pub(crate) max_connections: usize,
    pub(crate) remembered_requests: usize,
}

/// An idle connection takes some kilobytes.
const MAX_CONNECTIONS: usize = 16_384;

/// Settings of a broker that is to be started: see [`DevBroker::builder`].
#[derive(Debug, Clone)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    settings: Settings,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            settings: Settings {
                listen: "127.0.0.1:0".to_owned(),
                data_dir: None,
                fsync: false,
                topics: Vec::new(),
                nodes: 1,
                auto_create_topics: false,
                compact_every: None,
                groups: GroupSettings { min_session_timeout: Millis(1_000), ..GroupSettings::default() },
                transactions: TransactionSettings::default(),
                max_frame: 100 * 1024 * 1024,
                max_connections: MAX_CONNECTIONS,
                remembered_requests: 10_000,
            },
        }
    }
}

impl Builder {
    /// Where to listen, as `HOST:PORT`. Port 0, which is the default, takes a free one. Of several nodes the first listens
    /// there and the others on free ports, which a data folder remembers.
    pub fn listen(mut self, address: impl Into<String>) -> Builder {
        self.settings.listen = address.into();
        self
    }

    /// Keeps everything in this folder, so that a broker started with it again is the same broker. Without it all is gone
    /// when the broker stops.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.settings.data_dir = Some(folder.into());
        self
    }

    /// Waits for the disk after each write to the data folder. Off unless said: then a killed broker loses nothing, and a
    /// machine that fails may.
    pub fn fsync(mut self, on: bool) -> Builder {
        self.settings.fsync = on;
        self
    }

    /// Creates a topic at the start, unless the data folder has it already: `.topic(("orders", 3))`.
    pub fn topic(mut self, topic: impl Into<NewTopic>) -> Builder {
        self.settings.topics.push(topic.into());
        self
    }

    /// How many virtual nodes there are; their ids begin at 1. Each has a port of its own, leaders and coordinators are
    /// spread over them, and each can be down: [`DevBroker::node_down`].
    pub fn nodes(mut self, count: i32) -> Builder {
        self.settings.nodes = count;
        self
    }

    /// Creates a topic with one partition when a client asks for it. Off unless said.
    pub fn auto_create_topics(mut self, on: bool) -> Builder {
        self.settings.auto_create_topics = on;
        self
    }

    /// Compacts every topic with the policy `compact` so often, up to its active segment (`segment.bytes`, `segment.ms` of
    /// the topic). Without it only [`DevBroker::compact`] does.
    pub fn compact_every(mut self, period: Duration) -> Builder {
        self.settings.compact_every = Some(period.max(Duration::from_millis(1)));
        self
    }

    /// How long the first rebalance of a group waits for more members (`group.initial.rebalance.delay.ms`); not at all unless
    /// said.
    pub fn initial_rebalance_delay(mut self, delay: Duration) -> Builder {
        self.settings.groups.initial_rebalance_delay = millis(delay);
        self
    }

    /// The shortest and the longest session time-out that a member may ask for (`group.min.session.timeout.ms`,
    /// `group.max.session.timeout.ms`); 1 s and 30 min unless said: a Kafka asks for 6 s at least, but tests want less.
    pub fn session_timeouts(mut self, min: Duration, max: Duration) -> Builder {
        self.settings.groups.min_session_timeout = millis(min);
        self.settings.groups.max_session_timeout = millis(max);
        self
    }

    /// The longest transaction time-out that a producer may ask for (`transaction.max.timeout.ms`); 15 min unless said.
    pub fn max_transaction_timeout(mut self, max: Duration) -> Builder {
        self.settings.transactions.max_timeout = millis(max);
        self
    }

    /// The longest request in bytes; 100 MiB unless said. A longer one closes its connection.
    pub fn max_request_bytes(mut self, max: usize) -> Builder {
        self.settings.max_frame = max;
        self
    }

    /// How many connections there may be at a time (`max.connections`); 16,384 unless said. One more is closed at once.
    pub fn max_connections(mut self, max: usize) -> Builder {
        self.settings.max_connections = max;
        self
    }

    /// How many of the last requests [`DevBroker::requests`] remembers; 10,000 unless said.
    pub fn remember_requests(mut self, count: usize) -> Builder {
        self.settings.remembered_requests = count;
        self
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn into_settings(self) -> Settings {
        self.settings
    }

    /// Starts the broker. When this returns, clients can connect.
    pub fn start(self) -> Result<DevBroker, StartError> {
        DevBroker::start(self.settings)
    }
}
