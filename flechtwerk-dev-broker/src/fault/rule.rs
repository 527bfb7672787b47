//! Rules: what a request must be like to be hit, how often, and what is done then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::FaultBuilder;
use crate::ErrorCode;
use crate::wire::Api;

/// What a request is about, as far as faults and the log of requests care.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subject {
    pub(crate) transactional_id: Option<String>,
    pub(crate) group_id: Option<String>,
}

/// Before the request has its effect, or after, when only the answer is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum When {
    #[default]
    Before,
    After,
}

/// What happens to a request that is hit.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Delay(Duration, When),
    /// Waits until the value is true, or its sender gone.
    Hold(watch::Receiver<bool>, When),
    Drop(When),
    Answer(ErrorCode, When),
}

impl Action {
    fn name(&self) -> &'static str {
        match self {
            Action::Delay(_, When::Before) => "delay",
            Action::Delay(_, When::After) => "apply, then delay the answer",
            Action::Hold(_, When::Before) => "hold",
            Action::Hold(_, When::After) => "apply, then hold the answer",
            Action::Drop(When::Before) => "drop the connection",
            Action::Drop(When::After) => "apply, then drop the answer",
            Action::Answer(_, When::Before) => "answer an error",
            Action::Answer(_, When::After) => "apply, then answer an error",
        }
    }
}

/// Which requests are hit. What is not said matches all.
#[derive(Debug, Clone, Default)]
pub(super) struct Matcher {
    pub(super) api: Option<Api>,
    pub(super) client: Option<String>,
    pub(super) transactional_id: Option<String>,
    pub(super) group_id: Option<String>,
    pub(super) node: Option<i32>,
}

impl Matcher {
    fn matches(&self, api: Api, client: Option<&str>, node: i32, subject: &Subject) -> bool {
        let same = |wanted: &Option<String>, have: Option<&str>| match wanted {
            Some(wanted) => have == Some(wanted.as_str()),
            None => true,
        };
        self.api.is_none_or(|wanted| wanted == api)
            && self.node.is_none_or(|wanted| wanted == node)
            && same(&self.client, client)
            && same(&self.transactional_id, subject.transactional_id.as_deref())
            && same(&self.group_id, subject.group_id.as_deref())
    }
}

/// Which of the requests that match are hit, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occurrences {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// One fault.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) matcher: Matcher,
    pub(super) occurrences: Occurrences,
    pub(super) action: Action,
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    matched: u64,
    fired: u64,
    ended: bool,
}

impl Rule {
    pub(super) fn new(matcher: Matcher, occurrences: Occurrences, action: Action) -> Rule {
        Rule { matcher, occurrences, action, counts: Mutex::default(), changed: Condvar::new() }
    }

    /// One that is asked about no request.
    pub(super) fn counter() -> Rule {
        let never = Occurrences { first: u64::MAX, last: u64::MAX };
        Rule::new(Matcher::default(), never, Action::Delay(Duration::ZERO, When::Before))
    }

    pub(super) fn count(&self) {
        let mut counts = self.counts();
        counts.fired = counts.fired.saturating_add(1);
        self.changed.notify_all();
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that matches. Whether it is hit, and whether a later one may be.
    fn meet(&self, may_fire: bool) -> (bool, bool) {
        let mut counts = self.counts();
        counts.matched = counts.matched.saturating_add(1);
        let hit = may_fire
            && !counts.ended
            && (self.occurrences.first..=self.occurrences.last).contains(&counts.matched);
        let again = !counts.ended && counts.matched < self.occurrences.last;
        drop(counts);
        if hit {
            self.count();
        }
        (hit, again)
    }

    pub(super) fn end(&self) {
        self.counts().ended = true;
    }

    pub(super) fn fired(&self) -> u64 {
        self.counts().fired
    }

    /// Waits until it has fired so often. Whether it has, in time.
    pub(super) fn wait(&self, times: u64, patience: Duration) -> bool {
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

/// All faults of a broker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    rules: Arc<Mutex<Vec<Arc<Rule>>>>,
    /// Spares requests the lock while there are no faults.
    any: Arc<AtomicBool>,
}

impl Faults {
    pub(crate) fn begin(&self) -> FaultBuilder {
        FaultBuilder::new(self.clone())
    }

    pub(super) fn add(&self, rule: Arc<Rule>) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.push(rule);
        self.any.store(true, Ordering::Release);
    }

    /// What is to be done to a request. Of several faults that would hit it the oldest does; all that match count it.
    pub(crate) fn next(
        &self,
        api: Api,
        client: Option<&str>,
        node: i32,
        subject: &Subject,
    ) -> Option<Action> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut action = None;
        rules.retain(|rule| {
            if !rule.matcher.matches(api, client, node, subject) {
                return true;
            }
            let (hit, again) = rule.meet(action.is_none());
            if hit {
                tracing::info!(
                    %api,
                    client = client.unwrap_or_default(),
                    transactional_id = subject.transactional_id.as_deref(),
                    group_id = subject.group_id.as_deref(),
                    node,
                    fired = rule.fired(),
                    "fault: {}",
                    rule.action.name()
                );
                action = Some(rule.action.clone());
            }
            again
        });
        self.any.store(!rules.is_empty(), Ordering::Release);
        action
    }
}
