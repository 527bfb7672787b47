//! Time as an argument: a monotonic clock for deadlines and a wall clock for timestamps.

use std::fmt;

/// A point in time or a span, in milliseconds. As a point it counts from the start of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// The span that a signed number of the protocol means; a negative one is none at all.
    pub fn from_wire(millis: i32) -> Self {
        Self(u64::try_from(millis).unwrap_or(0))
    }

    /// This point in time, later by a span.
    pub fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// The time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Monotonic, since the start of the broker: for deadlines.
    pub since_start: Millis,
    /// Wall clock, milliseconds since 1970: for timestamps that clients see.
    pub wall: i64,
}
