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
    fault: Option<Fault>,
    release: Option<Box<dyn FnOnce() + Send>>,
}

impl Held {
    pub(crate) fn new(fault: Option<Fault>, release: impl FnOnce() + Send + 'static) -> Held {
        Held { fault, release: Some(Box::new(release)) }
    }

    /// How many requests have been held.
    pub fn fired(&self) -> u64 {
        self.fault.as_ref().map_or(0, Fault::fired)
    }

    /// Waits until a request is held: whether one is, in time. It blocks the thread.
    pub fn wait(&self, patience: Duration) -> bool {
        self.fault.as_ref().is_some_and(|fault| fault.wait(patience))
    }

    /// Lets everything go on. No request is held any more.
    pub fn release(self) {
        // As dropping does; here it can be seen.
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(fault) = &self.fault {
            fault.remove();
        }
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
