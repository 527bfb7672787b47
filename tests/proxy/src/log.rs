//! What the proxy did and when, for reports; and how much passed through it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::request::{self, Request};

/// Older events are forgotten.
const MOST_EVENTS: usize = 100_000;

/// Something that the proxy did on its own account.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// When.
    pub at: SystemTime,
    /// What, such as `apply, then drop the answer`.
    pub what: String,
    /// By which rule: [`Fault::number`](crate::Fault::number). None where the test asked for it directly.
    pub rule: Option<u64>,
    /// To which request.
    pub request: Option<Request>,
    /// To which node, where it is known.
    pub node: Option<i32>,
    /// On which connection: a number that no other has.
    pub connection: Option<u64>,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        write!(f, "{}.{:03} ", since.as_secs(), since.subsec_millis())?;
        if let Some(rule) = self.rule {
            write!(f, "rule {rule}: ")?;
        }
        f.write_str(&self.what)?;
        if let Some(request) = &self.request {
            write!(f, ": {request}")?;
        }
        if let Some(node) = self.node {
            write!(f, ", node {node}")?;
        }
        if let Some(connection) = self.connection {
            write!(f, ", connection {connection}")?;
        }
        Ok(())
    }
}

/// The last events, and the counts of requests.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: Mutex<VecDeque<Event>>,
    requests: Mutex<HashMap<Kind, u64>>,
}

/// API and client.
type Kind = (i16, Option<Arc<str>>);

impl Log {
    pub(crate) fn event(&self, event: Event) {
        tracing::info!("{event}");
        let mut events = self.events();
        if events.len() >= MOST_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// One that the test asked for.
    pub(crate) fn asked_for(&self, what: String, node: Option<i32>) {
        self.event(Event { at: SystemTime::now(), what, rule: None, request: None, node, connection: None });
    }

    pub(crate) fn all(&self) -> Vec<Event> {
        self.events().iter().cloned().collect()
    }

    pub(crate) fn count(&self, request: &Request) {
        let kind = (request.key, request.client_id.clone());
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry(kind).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> BTreeMap<(String, String), u64> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let named = |((key, client), count): (&Kind, &u64)| {
            let client = client.as_deref().unwrap_or_default().to_owned();
            ((request::name(*key), client), *count)
        };
        requests.iter().map(named).collect()
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
