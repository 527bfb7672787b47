//! The log of requests: the last ones that came, without their content.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Api;

/// Longer ids are remembered up to here: many long ones must not cost much memory.
const MAX_ID: usize = 1_000;

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// What was asked.
    pub api: Api,
    /// In which version.
    pub version: i16,
    /// The client id.
    pub client_id: Option<String>,
    /// The transactional id it is about.
    pub transactional_id: Option<String>,
    /// The group it is about.
    pub group_id: Option<String>,
    /// The node it came to.
    pub node: i32,
    /// When it came, since the start of the broker.
    pub at: Duration,
}

/// The last requests that came to a broker, the oldest first.
#[derive(Debug)]
pub struct Requests {
    limit: usize,
    last: Mutex<VecDeque<Request>>,
    came: Condvar,
}

impl Requests {
    pub(crate) fn new(limit: usize) -> Requests {
        Requests { limit, last: Mutex::default(), came: Condvar::new() }
    }

    pub(crate) fn record(&self, request: impl FnOnce() -> Request) {
        let remembered = |mut id: String| {
            if id.len() > MAX_ID {
                id.truncate(id.floor_char_boundary(MAX_ID));
                id.shrink_to_fit();
            }
            id
        };
        if self.limit == 0 {
            return;
        }
        let mut last = self.lock();
        if last.len() >= self.limit {
            last.pop_front();
        }
        let mut request = request();
        request.client_id = request.client_id.map(remembered);
        request.transactional_id = request.transactional_id.map(remembered);
        request.group_id = request.group_id.map(remembered);
        last.push_back(request);
        self.came.notify_all();
    }

    /// All that are remembered.
    pub fn all(&self) -> Vec<Request> {
        self.lock().iter().cloned().collect()
    }

    /// How many of those that are remembered are of this API.
    pub fn count(&self, api: Api) -> usize {
        self.count_where(|request| request.api == api)
    }

    /// How many of those that are remembered are so.
    pub fn count_where(&self, matches: impl FnMut(&Request) -> bool) -> usize {
        let mut matches = matches;
        self.lock().iter().filter(|request| matches(request)).count()
    }

    /// Waits until a request like this is remembered: whether one is, in time. It blocks the thread.
    pub fn wait_for(&self, patience: Duration, matches: impl FnMut(&Request) -> bool) -> bool {
        let mut matches = matches;
        let deadline = Instant::now().checked_add(patience);
        let mut last = self.lock();
        loop {
            if last.iter().any(&mut matches) {
                return true;
            }
            let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            let waited = self.came.wait_timeout(last, left.min(Duration::from_secs(3_600)));
            last = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(last, _)| last);
        }
    }

    /// Forgets them.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Request>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
