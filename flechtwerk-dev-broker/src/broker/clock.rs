//! The broker's two clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::coordinator::{Millis, Now};

/// Time since the start for deadlines, time of day for timestamps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Now {
        Now { since_start: millis(self.elapsed()), wall: wall() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// When a deadline comes. A millisecond late, so that it is past by then.
    pub(crate) fn instant(&self, at: Millis) -> Instant {
        let after = Duration::from_millis(at.0.saturating_add(1));
        self.start.checked_add(after).unwrap_or_else(|| self.start + Duration::from_secs(86_400 * 365))
    }
}

pub(crate) fn millis(duration: Duration) -> Millis {
    Millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Milliseconds since 1970.
pub(crate) fn wall() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or_default()
}
