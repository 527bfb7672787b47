//! Why a broker doesn't start, and why it refuses what it is asked to do.

use std::io;

use crate::ErrorCode;
use crate::coordinator::JournalError;
use crate::log::StorageError;

/// Why a broker doesn't start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is not free, not valid or not of this machine.
    #[error("can't listen on {address}: {source}; choose another address, port 0 takes a free port")]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The data folder is in use, damaged or can't be written.
    #[error(transparent)]
    DataDir(#[from] StorageError),
    /// The coordinators' journal in the data folder is of another version or damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A topic can't be created.
    #[error("can't create topic {topic:?}: {reason}")]
    Topic {
        /// Its name.
        topic: String,
        /// Why not.
        reason: String,
    },
    /// The number of nodes makes no sense.
    #[error("a broker can't have {count} nodes: choose 1 to 100")]
    Nodes {
        /// The number.
        count: i32,
    },
    /// The operating system gives no thread or no event queue.
    #[error("can't start the broker's thread: {0}")]
    Thread(#[source] io::Error),
}

/// Why a running broker refuses what a test asks of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The topic can't be created.
    #[error("can't create topic {topic:?}: {reason} ({code})")]
    Topic {
        /// Its name.
        topic: String,
        /// What a client would be answered.
        code: ErrorCode,
        /// Why not.
        reason: String,
    },
    /// There is no such topic.
    #[error("topic {topic:?} doesn't exist")]
    UnknownTopic {
        /// Its name.
        topic: String,
    },
    /// The topic is not compacted.
    #[error("topic {topic:?} is not compacted: create it with cleanup.policy=compact")]
    NotCompacted {
        /// Its name.
        topic: String,
    },
    /// There is no such node.
    #[error("there is no node {node}: ids begin at 1, and `nodes` says how many there are")]
    UnknownNode {
        /// The id.
        node: i32,
    },
    /// The data folder can't be written.
    #[error(transparent)]
    DataDir(#[from] StorageError),
}

/// A refusal as a client sees it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }
}
