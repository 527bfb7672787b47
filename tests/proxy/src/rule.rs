//! Rules: what a request must be like to be hit, which of those that match are, and what is done then.

use std::fmt;
use std::time::Duration;

use kafka_protocol::messages::ApiKey;

use crate::request::Request;

/// What happens to a request that is hit. Each of these comes before the broker acts, or after it has: then only the answer
/// is concerned.
///
/// The order on a connection is kept. What waits holds up what comes behind it on the same connection and in the same direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The request waits for so long, then goes on as if nothing had been.
    Delay(Duration),
    /// The broker acts, and its answer waits for so long.
    ApplyThenDelayReply(Duration),
    /// The request waits until it is released. It reaches the broker even if its client has gone meanwhile, as a packet would
    /// that the network has kept for long.
    Hold,
    /// The broker acts, and its answer waits until it is released.
    ApplyThenHoldReply,
    /// The connection is closed instead of passing the request on.
    DropConnection,
    /// The broker acts, and the connection is closed instead of passing the answer on.
    ApplyThenDropReply,
    /// All connections of the client are closed, to all nodes, instead of passing the request on.
    DropClient,
    /// The broker acts, and all connections of the client are closed instead of passing the answer on.
    ApplyThenDropClient,
    /// The request and all that come behind it on its connection are lost. The connection stays open: only the client's own
    /// time-out ends it.
    Lose,
    /// The broker acts, and its answer and all that come behind it on its connection are lost. The connection stays open.
    ApplyThenLoseReply,
}

/// Before the request reaches the broker, or when its answer is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
}

impl Action {
    pub(crate) fn when(self) -> When {
        match self {
            Action::Delay(_) | Action::Hold | Action::DropConnection | Action::DropClient | Action::Lose => {
                When::Before
            }
            Action::ApplyThenDelayReply(_)
            | Action::ApplyThenHoldReply
            | Action::ApplyThenDropReply
            | Action::ApplyThenDropClient
            | Action::ApplyThenLoseReply => When::After,
        }
    }

    /// Whether something waits to be released.
    pub(crate) fn holds(self) -> bool {
        matches!(self, Action::Hold | Action::ApplyThenHoldReply)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Delay(delay) => write!(f, "delay by {delay:?}"),
            Action::ApplyThenDelayReply(delay) => write!(f, "apply, then delay the answer by {delay:?}"),
            Action::Hold => f.write_str("hold"),
            Action::ApplyThenHoldReply => f.write_str("apply, then hold the answer"),
            Action::DropConnection => f.write_str("drop the connection"),
            Action::ApplyThenDropReply => f.write_str("apply, then drop the answer"),
            Action::DropClient => f.write_str("drop all connections of the client"),
            Action::ApplyThenDropClient => f.write_str("apply, then drop all connections of the client"),
            Action::Lose => f.write_str("lose the request"),
            Action::ApplyThenLoseReply => f.write_str("apply, then lose the answer"),
        }
    }
}

/// Which requests are hit. What is not said matches all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matcher {
    api: Option<ApiKey>,
    client: Option<String>,
    transactional_id: Option<String>,
    group_id: Option<String>,
    node: Option<i32>,
}

impl Matcher {
    pub(crate) fn matches(&self, request: &Request, node: Option<i32>) -> bool {
        let same = |wanted: &Option<String>, have: Option<&str>| match wanted {
            Some(wanted) => have == Some(wanted.as_str()),
            None => true,
        };
        self.api.is_none_or(|wanted| wanted as i16 == request.key)
            && self.node.is_none_or(|wanted| node == Some(wanted))
            && same(&self.client, request.client_id.as_deref())
            && same(&self.transactional_id, request.transactional_id.as_deref())
            && same(&self.group_id, request.group_id.as_deref())
    }
}

/// Which requests are hit, and what happens to them. See [`Proxy::rule`](crate::Proxy::rule).
#[derive(Debug, Clone)]
pub struct Rule {
    pub(crate) matcher: Matcher,
    /// The first and the last of those that match, counted from 1.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) action: Action,
}

impl Rule {
    /// Requests of this API.
    pub fn on(api: ApiKey) -> RuleBuilder {
        let mut rule = Rule::any();
        rule.matcher.api = Some(api);
        rule
    }

    /// Requests of any API.
    pub fn any() -> RuleBuilder {
        RuleBuilder { matcher: Matcher::default(), first: 1, last: 1 }
    }
}

/// Which requests a rule hits; ended by [`then`](Self::then).
///
/// What is not said matches every request, and without [`nth`](Self::nth), [`times`](Self::times) or
/// [`always`](Self::always) only the first that matches is hit. For an action that comes after the broker has acted, it is
/// answers that are counted.
#[derive(Debug, Clone)]
#[must_use = "a rule ends with what happens to the requests: `then(..)`"]
pub struct RuleBuilder {
    matcher: Matcher,
    first: u64,
    last: u64,
}

impl RuleBuilder {
    /// Requests with this client id.
    pub fn client(mut self, client_id: impl Into<String>) -> RuleBuilder {
        self.matcher.client = Some(client_id.into());
        self
    }

    /// Requests about this transactional id.
    pub fn transactional_id(mut self, id: impl Into<String>) -> RuleBuilder {
        self.matcher.transactional_id = Some(id.into());
        self
    }

    /// Requests about this group.
    pub fn group_id(mut self, id: impl Into<String>) -> RuleBuilder {
        self.matcher.group_id = Some(id.into());
        self
    }

    /// Requests to this node.
    pub fn node(mut self, id: i32) -> RuleBuilder {
        self.matcher.node = Some(id);
        self
    }

    /// The n-th request that matches, counted from 1 and from now, and no other.
    pub fn nth(mut self, n: u64) -> RuleBuilder {
        (self.first, self.last) = (n.max(1), n.max(1));
        self
    }

    /// The next `n` requests that match.
    pub fn times(mut self, n: u64) -> RuleBuilder {
        (self.first, self.last) = (1, n);
        self
    }

    /// Every request that matches, until the rule is removed.
    pub fn always(mut self) -> RuleBuilder {
        (self.first, self.last) = (1, u64::MAX);
        self
    }

    /// What happens to them.
    pub fn then(self, action: Action) -> Rule {
        Rule { matcher: self.matcher, first: self.first, last: self.last, action }
    }
}
