//! What a test holds in its hand after it said a fault.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::rule::Rule;

/// A fault that is in force until it has hit what it was to hit, or is [removed](Self::remove). Dropping this changes nothing.
#[derive(Debug, Clone)]
pub struct Fault {
    rule: Arc<Rule>,
}

impl Fault {
    pub(super) fn new(rule: Arc<Rule>) -> Fault {
        Fault { rule }
    }

    /// One that hits no request and only counts.
    pub(crate) fn counter() -> Fault {
        Fault::new(Arc::new(Rule::counter()))
    }

    pub(crate) fn count(&self) {
        self.rule.count();
    }

    /// How many requests it has hit.
    pub fn fired(&self) -> u64 {
        self.rule.fired()
    }

    /// Waits until it has hit a request: whether it has, in time. It blocks the thread.
    pub fn wait(&self, patience: Duration) -> bool {
        self.wait_times(1, patience)
    }

    /// Waits until it has hit so many requests: whether it has, in time. It blocks the thread.
    pub fn wait_times(&self, times: u64, patience: Duration) -> bool {
        self.rule.wait(times, patience)
    }

    /// No request is hit any more.
    pub fn remove(&self) {
        self.rule.end();
    }
}

/// Something that is held until this is released or dropped.
#[must_use = "what is held is released when this is dropped"]
pub struct Held {
    fault: Fault,
    release: Option<Box<dyn FnOnce() + Send>>,
}

impl Held {
    pub(crate) fn new(fault: Fault, release: impl FnOnce() + Send + 'static) -> Held {
        Held { fault, release: Some(Box::new(release)) }
    }

    /// How many requests, or transactions, have been held.
    pub fn fired(&self) -> u64 {
        self.fault.fired()
    }

    /// Waits until something is held: whether it is, in time. It blocks the thread.
    pub fn wait(&self, patience: Duration) -> bool {
        self.fault.wait(patience)
    }

    /// Lets everything go on. No request is held any more.
    pub fn release(self) {
        // As dropping does; here it can be seen.
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.fault.remove();
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("fault", &self.fault).finish_non_exhaustive()
    }
}
