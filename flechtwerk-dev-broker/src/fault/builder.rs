//! The fluent way to say a fault.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::rule::{Action, Faults, Matcher, Occurrences, Rule, When};
use super::{Fault, Held};
use crate::{Api, ErrorCode};

/// Which requests a fault hits; ended by what happens to them. See [`DevBroker::fault`](crate::DevBroker::fault).
///
/// What is not said matches every request, and without [`nth`](Self::nth), [`times`](Self::times) or
/// [`always`](Self::always) only the first that matches is hit.
#[derive(Debug)]
#[must_use = "a fault begins with what happens to the requests, such as `drop_connection()`"]
pub struct FaultBuilder {
    faults: Faults,
    matcher: Matcher,
    occurrences: Occurrences,
    when: When,
}

impl FaultBuilder {
    pub(super) fn new(faults: Faults) -> FaultBuilder {
        FaultBuilder {
            faults,
            matcher: Matcher::default(),
            occurrences: Occurrences { first: 1, last: 1 },
            when: When::Before,
        }
    }

    /// Requests of this API.
    pub fn api(mut self, api: Api) -> FaultBuilder {
        self.matcher.api = Some(api);
        self
    }

    /// Requests with this client id.
    pub fn client(mut self, client_id: impl Into<String>) -> FaultBuilder {
        self.matcher.client = Some(client_id.into());
        self
    }

    /// Requests about this transactional id.
    pub fn transactional_id(mut self, id: impl Into<String>) -> FaultBuilder {
        self.matcher.transactional_id = Some(id.into());
        self
    }

    /// Requests about this group.
    pub fn group_id(mut self, id: impl Into<String>) -> FaultBuilder {
        self.matcher.group_id = Some(id.into());
        self
    }

    /// Requests to this node.
    pub fn node(mut self, id: i32) -> FaultBuilder {
        self.matcher.node = Some(id);
        self
    }

    /// The n-th request that matches, counted from 1 and from now, and no other.
    pub fn nth(mut self, n: u64) -> FaultBuilder {
        self.occurrences = Occurrences { first: n.max(1), last: n.max(1) };
        self
    }

    /// The next `n` requests that match.
    pub fn times(mut self, n: u64) -> FaultBuilder {
        self.occurrences = Occurrences { first: 1, last: n };
        self
    }

    /// Every request that matches, until the fault is removed.
    pub fn always(mut self) -> FaultBuilder {
        self.occurrences = Occurrences { first: 1, last: u64::MAX };
        self
    }

    /// The fault comes before the request has an effect, as it does unless said.
    pub fn before(mut self) -> FaultBuilder {
        self.when = When::Before;
        self
    }

    /// The fault comes when the request has had its effect and only the answer is missing.
    pub fn after(mut self) -> FaultBuilder {
        self.when = When::After;
        self
    }

    /// Waits for so long, then goes on as if nothing had been.
    pub fn delay(self, delay: Duration) -> Fault {
        let when = self.when;
        self.end(Action::Delay(delay, when))
    }

    /// Closes the connection instead of an answer; without effect, unless [`after`](Self::after) was said.
    pub fn drop_connection(self) -> Fault {
        let when = self.when;
        self.end(Action::Drop(when))
    }

    /// Answers this error; without effect, unless [`after`](Self::after) was said.
    pub fn answer(self, error: ErrorCode) -> Fault {
        let when = self.when;
        self.end(Action::Answer(error, when))
    }

    /// Carries the request out and answers this error all the same.
    pub fn apply_then_answer(self, error: ErrorCode) -> Fault {
        self.end(Action::Answer(error, When::After))
    }

    /// Carries the request out and closes the connection instead of an answer.
    pub fn apply_then_drop_reply(self) -> Fault {
        self.end(Action::Drop(When::After))
    }

    /// Holds the requests until they are released by the handle, or the handle is dropped. Until then nothing else on the same
    /// connections goes on.
    pub fn hold(self) -> Held {
        let (sender, receiver) = watch::channel(false);
        let when = self.when;
        let fault = self.end(Action::Hold(receiver, when));
        Held::new(fault, move || {
            sender.send_replace(true);
        })
    }

    fn end(self, action: Action) -> Fault {
        let rule = Arc::new(Rule::new(self.matcher, self.occurrences, action));
        self.faults.add(Arc::clone(&rule));
        Fault::new(rule)
    }
}
