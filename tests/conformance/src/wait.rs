//! Waiting for conditions, because a broker's effects are not always there with its answer.

use std::time::{Duration, Instant};

/// How long a condition may take that a healthy broker reaches within a second or two.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Waits until `condition` holds; panics with `what` when [`DEADLINE`] passes.
#[track_caller]
pub fn wait_for(what: &str, condition: impl FnMut() -> bool) {
    wait_within(DEADLINE, what, condition);
}

/// Waits until `condition` holds; panics with `what` when `limit` passes.
#[track_caller]
pub fn wait_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < until, "waited {limit:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
