//! What goes into the transaction coordinator and comes out of it.

use std::fmt;

use crate::coordinator::{Millis, Producer, TopicPartition};

/// How the transaction coordinator behaves.
#[derive(Debug, Clone)]
pub struct TransactionSettings {
    /// The longest time-out a producer may ask for (`transaction.max.timeout.ms`).
    pub max_timeout: Millis,
    /// How long a transactional id without a transaction is remembered (`transactional.id.expiration.ms`); `None` keeps it.
    pub id_expiration: Option<Millis>,
    /// The first producer id to give out.
    pub first_producer_id: i64,
}

impl Default for TransactionSettings {
    fn default() -> Self {
        Self { max_timeout: Millis(900_000), id_expiration: None, first_producer_id: 0 }
    }
}

/// The state of a transactional id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionState {
    /// There was no transaction yet with this producer.
    Empty,
    /// A transaction is open.
    Ongoing,
    /// It is committed; markers are being written.
    PrepareCommit,
    /// It is aborted; markers are being written.
    PrepareAbort,
    /// It is committed, and all markers are written.
    CompleteCommit,
    /// It is aborted, and all markers are written.
    CompleteAbort,
    /// The transactional id has expired.
    Dead,
}

impl TransactionState {
    /// All states.
    pub const ALL: [Self; 7] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
        Self::Dead,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
            Self::Dead => "Dead",
        }
    }

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for TransactionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An InitProducerId request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitRequest {
    /// The transactional id; `None` for a producer that is idempotent alone.
    pub transactional_id: Option<String>,
    /// The transaction time-out in milliseconds.
    pub timeout_ms: i32,
    /// The id and epoch that the request carries (version 3 and above), both -1 for none (KIP-360).
    pub current: Producer,
}

/// A transactional id in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTransaction {
    /// The transactional id.
    pub transactional_id: String,
    /// Its producer id.
    pub producer_id: i64,
    /// Its state.
    pub state: TransactionState,
}

/// What a ListTransactions request asks for. An empty filter lets everything pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFilter {
    /// Names of states as on the wire.
    pub states: Vec<String>,
    /// Producer ids.
    pub producer_ids: Vec<i64>,
    /// Only transactions that were opened longer ago than this many milliseconds; negative for all.
    pub duration_ms: i64,
}

impl Default for ListFilter {
    fn default() -> Self {
        Self { states: Vec::new(), producer_ids: Vec::new(), duration_ms: -1 }
    }
}

/// The answer to a ListTransactions request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Names in the filter that are no state.
    pub unknown_states: Vec<String>,
    /// What passes the filter, in the order of the transactional ids.
    pub transactions: Vec<ListedTransaction>,
}

/// A transactional id in detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedTransaction {
    /// The transactional id.
    pub transactional_id: String,
    /// Its state.
    pub state: TransactionState,
    /// Its producer id and epoch.
    pub producer: Producer,
    /// Its time-out in milliseconds.
    pub timeout_ms: i32,
    /// When the last transaction was opened (wall clock), -1 if there was none.
    pub start: i64,
    /// The partitions of the transaction.
    pub partitions: Vec<TopicPartition>,
    /// The groups of the transaction.
    pub groups: Vec<String>,
}
