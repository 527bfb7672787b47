//! What a call asks its caller to do: answers to send, markers to write, records to keep.

use super::group::{JoinResponse, SyncResponse};
use super::{Producer, Record, TopicPartition};

/// The caller's name for a request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What a call wants done. The caller passes one in, carries out what it finds in it, and may use it again.
#[derive(Debug, Default)]
pub struct Effects {
    /// Answers to JoinGroup and SyncGroup requests.
    pub answers: Vec<Answer>,
    /// Transactions that are decided and whose markers are to be written.
    pub markers: Vec<WriteMarkers>,
    /// Changes to keep in the journal, in this order.
    pub records: Vec<Record>,
}

impl Effects {
    /// Nothing to do.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The answer to a request that waited. Each ticket is answered exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To a JoinGroup request.
    Join {
        /// The ticket the request came with.
        ticket: Ticket,
        /// What to answer.
        response: JoinResponse,
    },
    /// To a SyncGroup request.
    Sync {
        /// The ticket the request came with.
        ticket: Ticket,
        /// What to answer.
        response: SyncResponse,
    },
}

impl Answer {
    /// The ticket that is answered.
    pub fn ticket(&self) -> Ticket {
        match self {
            Self::Join { ticket, .. } | Self::Sync { ticket, .. } => *ticket,
        }
    }
}

/// A transaction that is decided: its markers are to be written to all its partitions, and its groups' pending offsets are
/// to be completed ([`Groups::complete_txn_offsets`](super::Groups::complete_txn_offsets), once for each group). Then
/// [`Transactions::markers_written`](super::Transactions::markers_written) ends it. Until then its producer is answered
/// `CONCURRENT_TRANSACTIONS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteMarkers {
    /// Whose transaction it is.
    pub transactional_id: String,
    /// The producer id and epoch the markers carry. After a time-out or a fencing the epoch is one above the one the records carry.
    pub producer: Producer,
    /// Whether it is committed; otherwise it is aborted.
    pub commit: bool,
    /// The partitions with records of the transaction.
    pub partitions: Vec<TopicPartition>,
    /// The groups with pending offsets of the transaction.
    pub groups: Vec<String>,
}
