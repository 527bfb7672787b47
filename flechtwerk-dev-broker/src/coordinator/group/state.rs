//! A group: its members, where it is in the cycle of its rebalances, and what can be asked of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Context;
use super::member::Member;
use super::offsets::Offsets;
use super::subscription;
use super::types::{GroupState, JoinProtocol, JoinResponse, JoinedMember, SyncResponse};
use crate::coordinator::journal::GroupRecord;
use crate::coordinator::{Answer, ErrorCode, Millis, Now};

/// The class of protocols whose metadata says what a member subscribes to.
const CONSUMER: &str = "consumer";

/// A group.
pub(super) struct Group {
    pub(super) state: GroupState,
    /// Since when (wall clock) it has been in this state.
    pub(super) since: i64,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) members: BTreeMap<String, Member>,
    /// The member ids of static members, by instance id.
    pub(super) instances: BTreeMap<String, String>,
    /// Member ids that were given out and not used yet, with the time when they lapse.
    pub(super) pending_join: BTreeMap<String, Millis>,
    /// Members of this generation that have not asked for their assignment yet.
    pub(super) pending_sync: BTreeSet<String>,
    /// While it prepares a rebalance: when that ends without those who have not joined.
    pub(super) join_timer: Option<JoinTimer>,
    /// When those that have not asked for their assignment are thrown out.
    pub(super) sync_timer: Option<Millis>,
    /// The topics that its members consume, where that is known.
    pub(super) subscribed: Option<BTreeSet<String>>,
    pub(super) offsets: Offsets,
    /// What the journal has of its membership; none for a group that is there for its offsets alone.
    pub(super) durable: Option<Arc<GroupRecord>>,
}

/// The end of the preparation of a rebalance.
pub(super) struct JoinTimer {
    pub(super) at: Millis,
    /// Of a group that was empty: it waits for more members, whoever has joined already.
    pub(super) first: Option<FirstRebalance>,
}

/// The first rebalance of a group that was empty.
pub(super) struct FirstRebalance {
    /// For how long it may be put off once more.
    pub(super) remaining: Millis,
    /// Whether a member came while it waited.
    pub(super) member_added: bool,
}

impl Group {
    /// A group without members and offsets.
    pub(super) fn new(since: i64) -> Self {
        Self {
            state: GroupState::Empty,
            since,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            pending_join: BTreeMap::new(),
            pending_sync: BTreeSet::new(),
            join_timer: None,
            sync_timer: None,
            subscribed: None,
            offsets: Offsets::default(),
            durable: None,
        }
    }

    pub(super) fn is(&self, state: GroupState) -> bool {
        self.state == state
    }

    pub(super) fn enter(&mut self, state: GroupState, now: Now) {
        self.state = state;
        self.since = now.wall;
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    pub(super) fn has_all_joined(&self) -> bool {
        self.pending_join.is_empty() && self.members.values().all(|member| member.join.is_some())
    }

    /// How long its rebalances may take: as long as its slowest member wants, and never no time at all, or a rebalance that cannot end
    /// would be tried again and again.
    pub(super) fn rebalance_timeout(&self) -> Millis {
        let slowest = self.members.values().map(|member| member.rebalance_timeout).max();
        slowest.unwrap_or_default().max(Millis(1))
    }

    /// Whether this is a member, and the one that its instance id stands for.
    pub(super) fn check_member(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.instances.get(instance_id) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(existing) if existing != member_id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    /// Whether a member with these protocols has one in common with all others.
    pub(super) fn supports(&self, protocol_type: &str, protocols: &[JoinProtocol]) -> bool {
        if self.is(GroupState::Empty) {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type) && !self.common(protocols).is_empty()
    }

    /// Which of these protocols all members support.
    fn common<'a>(&self, protocols: &'a [JoinProtocol]) -> BTreeSet<&'a str> {
        let mut common: BTreeSet<&str> = protocols.iter().map(|protocol| protocol.name.as_str()).collect();
        for member in self.members.values() {
            if common.is_empty() {
                break;
            }
            common = member.supported(&common);
        }
        common
    }

    /// The protocol that most members like best, of those that all support. Between equals the name decides.
    pub(super) fn select_protocol(&self) -> Option<String> {
        let first = self.members.values().next()?;
        let candidates = self.common(&first.protocols);
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for name in self.members.values().filter_map(|member| member.vote(&candidates)) {
            let count = votes.entry(name).or_default();
            *count = count.saturating_add(1);
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name.to_owned())
    }

    /// Notes what the members consume, if their protocol says so in a form that can be read.
    pub(super) fn note_subscriptions(&mut self) {
        self.subscribed = None;
        if self.protocol_type.as_deref() != Some(CONSUMER) {
            return;
        }
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            match subscription::topics(&member.metadata(self.protocol.as_deref())) {
                Some(subscribed) => topics.extend(subscribed),
                None => return,
            }
        }
        self.subscribed = Some(topics);
    }

    /// Whether a member consumes the topic, or may do so.
    pub(super) fn is_subscribed(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }

    pub(super) fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// Removes a member, or an id that was given out. What it waits for is answered: it may join again.
    pub(super) fn remove(&mut self, cx: &mut Context<'_>, member_id: &str) {
        self.pending_join.remove(member_id);
        self.pending_sync.remove(member_id);
        let Some(member) = self.members.remove(member_id) else {
            return;
        };
        if let Some(ticket) = member.join {
            let response = JoinResponse::error(ErrorCode::UnknownMemberId, "");
            cx.out.answers.push(Answer::Join { ticket, response });
        }
        if let Some(ticket) = member.sync {
            let response = SyncResponse::error(ErrorCode::UnknownMemberId);
            cx.out.answers.push(Answer::Sync { ticket, response });
        }
        if let Some(instance_id) = &member.instance_id {
            self.instances.remove(instance_id);
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// What a member is told about its group: everything if it leads, or who leads.
    pub(super) fn join_response(&self, member_id: &str) -> JoinResponse {
        JoinResponse {
            error: ErrorCode::None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            member_id: member_id.to_owned(),
            skip_assignment: false,
            members: if self.is_leader(member_id) { self.joined_members() } else { Vec::new() },
        }
    }

    fn joined_members(&self) -> Vec<JoinedMember> {
        let joined = |(member_id, member): (&String, &Member)| JoinedMember {
            member_id: member_id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(self.protocol.as_deref()),
        };
        self.members.iter().map(joined).collect()
    }

    pub(super) fn next_deadline(&self) -> Option<Millis> {
        let sessions = self.members.values().filter_map(|member| member.session).min();
        let pending = self.pending_join.values().copied().min();
        let join = self.join_timer.as_ref().map(|timer| timer.at);
        [sessions, pending, join, self.sync_timer].into_iter().flatten().min()
    }
}
