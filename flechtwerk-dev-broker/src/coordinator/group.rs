//! The group coordinator: membership by the classic protocol, committed offsets, and pending offsets of transactions.
//!
//! A group is a state machine (`state`): its members join until all are there (`join`, `rebalance`), its leader assigns, and each
//! member fetches its assignment (`sync`). Static members keep their place when they come back under a new member id (`fixed`).
//! A group's offsets are its own affair (`offsets`, `commit`), and outlive its members.

mod commit;
mod debug;
mod durable;
mod fixed;
mod join;
mod member;
mod offsets;
mod query;
mod rebalance;
mod state;
mod subscription;
mod sync;
#[cfg(test)]
mod tests;
mod types;

pub use types::{
    CommitRequest, DescribedGroup, DescribedMember, FetchedOffset, GroupSettings, GroupState, JoinProtocol,
    JoinRequest, JoinResponse, JoinedMember, LeavingMember, ListedGroup, OffsetCommit, SyncRequest,
    SyncResponse, TxnCommitRequest,
};

use std::collections::BTreeMap;
use std::fmt;

use super::journal::Entry;
use super::{Answer, Effects, ErrorCode, Millis, Now, Ticket};
use member::MemberIds;
use state::Group;

/// How often groups are looked at for offsets that have outlived their time.
const CLEANUP_INTERVAL: Millis = Millis(600_000);

/// All groups of the broker.
pub struct Groups {
    settings: GroupSettings,
    groups: BTreeMap<String, Group>,
    ids: MemberIds,
    /// The place of the last commit among all.
    position: u64,
    next_cleanup: Option<Millis>,
}

/// What the steps of a group need from outside the group.
pub(super) struct Context<'a> {
    now: Now,
    name: &'a str,
    settings: &'a GroupSettings,
    out: &'a mut Effects,
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

impl Groups {
    /// No groups yet.
    pub fn new(settings: GroupSettings) -> Self {
        let ids = MemberIds::new(settings.member_id_seed);
        Self { settings, groups: BTreeMap::new(), ids, position: 0, next_cleanup: None }
    }

    /// JoinGroup. The answer comes as an effect, of this call or of a later one.
    pub fn join(&mut self, now: Now, ticket: Ticket, request: JoinRequest, out: &mut Effects) {
        let refused = |error| JoinResponse::error(error, &request.member_id);
        let session = Millis::from_wire(request.session_timeout);
        let error = if request.group.is_empty() {
            ErrorCode::InvalidGroupId
        } else if session < self.settings.min_session_timeout || session > self.settings.max_session_timeout {
            ErrorCode::InvalidSessionTimeout
        } else if !request.member_id.is_empty() && !self.groups.contains_key(&request.group) {
            ErrorCode::UnknownMemberId
        } else {
            ErrorCode::None
        };
        if !error.is_none() {
            out.answers.push(Answer::Join { ticket, response: refused(error) });
            return;
        }
        let name = request.group.clone();
        let group = self.groups.entry(name.clone()).or_insert_with(|| {
            let mut group = Group::new(now.wall);
            out.records.push(Entry::Group { group: name.clone(), value: group.note_durable() }.into());
            group
        });
        let mut cx = Context { now, name: &name, settings: &self.settings, out };
        group.join(&mut cx, &mut self.ids, ticket, request);
    }

    /// SyncGroup. The answer comes as an effect, of this call or of a later one.
    pub fn sync(&mut self, now: Now, ticket: Ticket, request: SyncRequest, out: &mut Effects) {
        let error = if request.group.is_empty() {
            ErrorCode::InvalidGroupId
        } else if let Some(group) = self.groups.get_mut(&request.group) {
            let name = request.group.clone();
            let mut cx = Context { now, name: &name, settings: &self.settings, out };
            group.sync(&mut cx, ticket, request);
            return;
        } else {
            ErrorCode::UnknownMemberId
        };
        out.answers.push(Answer::Sync { ticket, response: SyncResponse::error(error) });
    }

    /// Heartbeat.
    pub fn heartbeat(
        &mut self,
        now: Now,
        group: &str,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> ErrorCode {
        if group.is_empty() {
            return ErrorCode::InvalidGroupId;
        }
        match self.groups.get_mut(group) {
            Some(group) => group.heartbeat(now, member_id, instance_id, generation),
            None => ErrorCode::UnknownMemberId,
        }
    }

    /// LeaveGroup: one code for each leaving member, in their order, or one for the whole request. Versions below 3 have one member,
    /// whose code is the request's.
    pub fn leave(
        &mut self,
        now: Now,
        group: &str,
        members: &[LeavingMember],
        out: &mut Effects,
    ) -> Result<Vec<ErrorCode>, ErrorCode> {
        if group.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let name = group;
        match self.groups.get_mut(name) {
            Some(group) => {
                let mut cx = Context { now, name, settings: &self.settings, out };
                Ok(group.leave(&mut cx, members))
            }
            None => Ok(vec![ErrorCode::UnknownMemberId; members.len()]),
        }
    }

    /// DeleteGroups, for one group.
    pub fn delete_group(&mut self, group: &str, out: &mut Effects) -> ErrorCode {
        match self.groups.get(group) {
            None => ErrorCode::GroupIdNotFound,
            Some(found) if !found.is(GroupState::Empty) => ErrorCode::NonEmptyGroup,
            Some(_) => {
                self.change(Entry::GroupDeleted { group: group.to_owned() }, out);
                ErrorCode::None
            }
        }
    }

    /// Does what is due by now: sessions and rebalances that time out, and offsets that expire.
    pub fn tick(&mut self, now: Now, out: &mut Effects) {
        for (name, group) in &mut self.groups {
            let mut cx = Context { now, name, settings: &self.settings, out: &mut *out };
            group.tick(&mut cx);
        }
        let Some(retention) = self.settings.offsets_retention else {
            return;
        };
        if self.next_cleanup.is_some_and(|at| at <= now.since_start) {
            self.expire_offsets(now, retention, out);
        }
        if self.next_cleanup.is_none_or(|at| at <= now.since_start) {
            self.next_cleanup = Some(now.since_start.after(CLEANUP_INTERVAL.min(retention).max(Millis(1))));
        }
    }

    /// When something is due next.
    pub fn next_deadline(&self) -> Option<Millis> {
        let groups = self.groups.values().filter_map(Group::next_deadline).min();
        groups.into_iter().chain(self.next_cleanup).min()
    }
}
