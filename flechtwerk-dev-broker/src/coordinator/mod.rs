//! The coordinators: groups with their offsets, and transactions, as state machines without I/O.
//!
//! Nothing here reads a clock, waits, or writes a file. The caller passes the time ([`Now`]) with each call and carries out what
//! the call adds to [`Effects`], in this order:
//!
//! 1. [`Effects::records`] are appended to the journal, before anything that follows from them is seen from outside;
//! 2. [`Effects::answers`] go to the requests that wait under the ticket they name;
//! 3. [`Effects::markers`] are written to the partitions and groups they name, and reported by
//!    [`Transactions::markers_written`].
//!
//! So a rule of the protocol can be tested by a history of calls, a fault can hold a transaction between its decision and its
//! markers, and a broker that was killed is built again from its journal ([`Coordinators::restore`]).

mod effects;
mod error;
pub mod group;
mod journal;
mod restore;
#[cfg(test)]
mod tests;
mod time;
pub mod transaction;

pub use effects::{Answer, Effects, Ticket, WriteMarkers};
pub use error::ErrorCode;
pub use group::Groups;
pub use journal::{JournalError, Record};
pub use restore::{Coordinators, Settings};
pub use time::{Millis, Now};
pub use transaction::Transactions;

/// A partition of a topic, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
}

impl TopicPartition {
    /// The partition with this number of this topic.
    pub fn new(topic: impl Into<String>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

/// A producer's identity on the wire: its id and the epoch that tells its incarnations apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Producer {
    /// The producer id.
    pub id: i64,
    /// The producer epoch.
    pub epoch: i16,
}

impl Producer {
    /// The producer with this id and epoch.
    pub fn new(id: i64, epoch: i16) -> Self {
        Self { id, epoch }
    }
}
