//! Rules in force: how often each has hit, who waits for that, and what it holds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::request::Request;
use crate::rule::{Rule, When};

/// A rule that is in force until it has hit what it was to hit, or is [removed](Self::remove).
///
/// Dropping this changes nothing, but that what it holds is [released](Self::release).
#[derive(Debug)]
#[must_use = "what is held is released when this is dropped"]
pub struct Fault {
    active: Arc<Active>,
}

impl Fault {
    /// The number by which the log names it.
    pub fn number(&self) -> u64 {
        self.active.number
    }

    /// How many requests, or answers, it has hit.
    pub fn fired(&self) -> u64 {
        self.active.counts().fired
    }

    /// How many requests, or answers, it holds at this moment.
    pub fn held(&self) -> u64 {
        self.active.counts().held
    }

    /// Waits until it has hit something: whether it has, in time. It blocks the thread.
    ///
    /// Where the broker was to act first, it has.
    pub fn wait(&self, patience: Duration) -> bool {
        self.wait_times(1, patience)
    }

    /// Waits until it has hit so much: whether it has, in time. It blocks the thread.
    pub fn wait_times(&self, times: u64, patience: Duration) -> bool {
        self.active.wait(times, patience)
    }

    /// Lets everything go on that it holds. Nothing more is hit.
    pub fn release(&self) {
        self.remove();
        self.active.released.send_replace(true);
    }

    /// Nothing more is hit. What is held stays held.
    pub fn remove(&self) {
        self.active.counts().ended = true;
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        if self.active.rule.action.holds() {
            self.release();
        }
    }
}

/// One rule in force.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) number: u64,
    pub(crate) rule: Rule,
    counts: Mutex<Counts>,
    changed: Condvar,
    released: watch::Sender<bool>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    matched: u64,
    fired: u64,
    held: u64,
    ended: bool,
}

impl Active {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what matches. Whether it is hit, and whether a later one may be.
    fn meet(&self, may_fire: bool) -> (bool, bool) {
        let mut counts = self.counts();
        if counts.ended {
            return (false, false);
        }
        counts.matched = counts.matched.saturating_add(1);
        let hit = may_fire && (self.rule.first..=self.rule.last).contains(&counts.matched);
        if hit && self.rule.action.holds() {
            counts.held += 1;
        }
        (hit, counts.matched < self.rule.last)
    }

    /// Says that it has hit, to those who wait for it.
    pub(crate) fn fire(&self) {
        self.counts().fired += 1;
        self.changed.notify_all();
    }

    /// Waits until what is held may go on.
    pub(crate) async fn released(&self) {
        let _held = Held(self);
        // The sender lives as long as this.
        let _ = self.released.subscribe().wait_for(|released| *released).await;
    }

    fn wait(&self, times: u64, patience: Duration) -> bool {
        let deadline = Instant::now().checked_add(patience);
        let mut counts = self.counts();
        while counts.fired < times {
            let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(counts, left.min(Duration::from_secs(3_600)));
            counts = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(counts, _)| counts);
        }
        true
    }
}

/// Something that is held: until it goes on, or its connection ends.
struct Held<'a>(&'a Active);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.counts().held -= 1;
    }
}

/// All rules in force.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    rules: Mutex<Vec<Arc<Active>>>,
    /// Spares requests the lock while there are none.
    any: AtomicBool,
    numbers: AtomicU64,
}

impl Rules {
    pub(crate) fn add(&self, rule: Rule) -> Fault {
        let active = Arc::new(Active {
            number: self.numbers.fetch_add(1, Ordering::Relaxed) + 1,
            rule,
            counts: Mutex::default(),
            changed: Condvar::new(),
            released: watch::channel(false).0,
        });
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&active));
        self.any.store(true, Ordering::Release);
        Fault { active }
    }

    /// Which rule hits a request, or its answer. Of several that would the oldest does; all that match count it.
    pub(crate) fn next(&self, when: When, request: &Request, node: Option<i32>) -> Option<Arc<Active>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hit: Option<Arc<Active>> = None;
        rules.retain(|active| {
            let rule = &active.rule;
            if rule.action.when() != when || !rule.matcher.matches(request, node) {
                return !active.counts().ended;
            }
            let (hits, again) = active.meet(hit.is_none());
            if hits {
                hit = Some(Arc::clone(active));
            }
            again
        });
        self.any.store(!rules.is_empty(), Ordering::Release);
        hit
    }
}
