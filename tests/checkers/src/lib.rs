//! The invariants of the guarantee, each a pure function over what was recorded of a run: of a simulated one, or of one
//! against real brokers. No client of Kafka is needed here; whoever has one fills these types.
//!
//! | check | function | fed from |
//! |---|---|---|
//! | I1 tiling | [`tiling::check`] | the records of `__consumer_offsets` with their producers, the runtime's hook for what a batch started from |
//! | I2 not torn | [`whole::check`] | read_uncommitted outputs and changelog with the fate of each record, and I1's transactions |
//! | I3 outputs | [`outputs::check`] | read_committed output, and a sequential model of the stage |
//! | I4 state | [`state::check`] | the local stores, the compacted changelog, and the model |
//! | I5 canaries | [`reads::canaries`] | whatever a read_committed reader and the stores have shown |
//! | I6 nothing hangs | [`ends::hanging`] | both ends of each partition, and the cluster's list of open transactions |
//! | I7 observer | [`outputs::observer`] | a reader that was there all the time |
//! | I8 histories | [`reads::anomalies`] | what was written with which fate, and what was read |
//! | I9 liveness | [`ends::liveness`] | the last data record and the committed position of each input, and who waits |
//!
//! Each gives all violations that it finds, by name, so that a test can say which one it expects.

pub mod batches;
pub mod ends;
pub mod outputs;
pub mod reads;
pub mod stamp;
pub mod state;
pub mod tiling;
pub mod whole;

use std::fmt;

pub use stamp::Stamp;

/// An invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The transactions of a task tile its input.
    Tiling,
    /// A transaction is all or nothing.
    Whole,
    /// Outputs are what a sequential model gives.
    Outputs,
    /// State is what a sequential model gives.
    State,
    /// Aborted records stay unseen.
    Canaries,
    /// No transaction is left open.
    Hanging,
    /// An observer sees no value go back, twice or out of order.
    Observer,
    /// No anomaly in what was written and read.
    Anomalies,
    /// All goes on after the last fault.
    Liveness,
}

impl Check {
    /// Its number: `I1` to `I9`.
    pub fn number(self) -> &'static str {
        match self {
            Check::Tiling => "I1",
            Check::Whole => "I2",
            Check::Outputs => "I3",
            Check::State => "I4",
            Check::Canaries => "I5",
            Check::Hanging => "I6",
            Check::Observer => "I7",
            Check::Anomalies => "I8",
            Check::Liveness => "I9",
        }
    }
}

/// Something that must never happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant is broken.
    pub check: Check,
    /// How, as a short name.
    pub kind: &'static str,
    /// Where, for a person.
    pub what: String,
}

impl Violation {
    /// A violation.
    pub fn new(check: Check, kind: &'static str, what: impl Into<String>) -> Violation {
        Violation { check, kind, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.check.number(), self.kind, self.what)
    }
}

impl std::error::Error for Violation {}

/// A partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// The topic.
    pub topic: String,
    /// Its number.
    pub number: i32,
}

impl Partition {
    /// The partition of this topic with this number.
    pub fn new(topic: impl Into<String>, number: i32) -> Partition {
        Partition { topic: topic.into(), number }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.number)
    }
}

/// An incarnation of a producer, as raw batches name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Producer {
    /// The producer id.
    pub id: i64,
    /// The epoch.
    pub epoch: i16,
}

#[cfg(test)]
fn kinds(violations: &[Violation]) -> Vec<&'static str> {
    violations.iter().map(|violation| violation.kind).collect()
}
