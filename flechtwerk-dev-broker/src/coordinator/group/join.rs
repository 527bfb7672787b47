//! JoinGroup: who becomes a member, and which joins start a rebalance.

use super::Context;
use super::member::{Member, MemberIds, distinct};
use super::state::Group;
use super::types::{GroupState, JoinRequest, JoinResponse};
use crate::coordinator::{Answer, ErrorCode, Millis, Ticket};

/// How long a new member waits for its group. It cannot send heartbeats, for it has no id yet, and a client that has gone in the
/// meantime must not stay for ever.
const NEW_MEMBER_TIMEOUT: Millis = Millis(300_000);

impl Group {
    pub(super) fn join(
        &mut self,
        cx: &mut Context<'_>,
        ids: &mut MemberIds,
        ticket: Ticket,
        mut request: JoinRequest,
    ) {
        request.protocols = distinct(std::mem::take(&mut request.protocols));
        let error = if !self.has_room_for(&request.member_id, cx.settings.max_size) {
            self.remove(cx, &request.member_id);
            request.member_id = String::new();
            ErrorCode::GroupMaxSizeReached
        } else if !self.supports(&request.protocol_type, &request.protocols) {
            ErrorCode::InconsistentGroupProtocol
        } else {
            ErrorCode::None
        };
        if !error.is_none() {
            refuse(cx, ticket, error, &request.member_id);
        } else if request.member_id.is_empty() {
            self.join_new(cx, ids, ticket, request);
        } else if self.pending_join.contains_key(&request.member_id) && request.instance_id.is_none() {
            let member_id = request.member_id.clone();
            self.add_member(cx, ticket, request, member_id);
        } else {
            self.join_again(cx, ticket, request);
        }
    }

    /// Whether the group is small enough for another member, or has this one already.
    fn has_room_for(&self, member_id: &str, max_size: usize) -> bool {
        match self.state {
            GroupState::Empty | GroupState::Dead => true,
            // Those that have joined again count, so that the last to come are thrown out of a group that is too large.
            GroupState::PreparingRebalance => {
                self.members.get(member_id).is_some_and(|member| member.join.is_some())
                    || self.members.values().filter(|member| member.join.is_some()).count() < max_size
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                self.members.contains_key(member_id) || self.members.len() < max_size
            }
        }
    }

    /// A member without an id.
    fn join_new(&mut self, cx: &mut Context<'_>, ids: &mut MemberIds, ticket: Ticket, request: JoinRequest) {
        let mut member_id = ids.next(request.instance_id.as_deref().unwrap_or(&request.client_id));
        while self.members.contains_key(&member_id) || self.pending_join.contains_key(&member_id) {
            member_id = ids.next(request.instance_id.as_deref().unwrap_or(&request.client_id));
        }
        let existing = request.instance_id.as_deref().and_then(|instance_id| self.instances.get(instance_id));
        if let Some(existing) = existing.cloned() {
            self.replace_static(cx, ticket, request, &existing, member_id);
        } else if request.instance_id.is_none() && request.member_id_required {
            let lapse = cx.now.since_start.after(Millis::from_wire(request.session_timeout));
            self.pending_join.insert(member_id.clone(), lapse);
            refuse(cx, ticket, ErrorCode::MemberIdRequired, &member_id);
        } else {
            self.add_member(cx, ticket, request, member_id);
        }
    }

    fn add_member(&mut self, cx: &mut Context<'_>, ticket: Ticket, request: JoinRequest, member_id: String) {
        if let Some(first) = self.join_timer.as_mut().and_then(|timer| timer.first.as_mut()) {
            first.member_added = true;
        }
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(member_id.clone());
        }
        if let Some(instance_id) = &request.instance_id {
            self.instances.insert(instance_id.clone(), member_id.clone());
        }
        self.pending_join.remove(&member_id);
        let session_timeout = Millis::from_wire(request.session_timeout);
        let member = Member {
            session_timeout,
            rebalance_timeout: rebalance_timeout(&request),
            instance_id: request.instance_id,
            client_id: request.client_id,
            client_host: request.client_host,
            protocols: request.protocols,
            assignment: Default::default(),
            join: Some(ticket),
            sync: None,
            is_new: true,
            session: Some(cx.now.since_start.after(NEW_MEMBER_TIMEOUT)),
        };
        self.members.insert(member_id, member);
        self.rebalance_or_complete(cx);
    }

    /// A member with an id: it takes part in a rebalance, starts one, or is told what it missed.
    fn join_again(&mut self, cx: &mut Context<'_>, ticket: Ticket, request: JoinRequest) {
        let member_id = request.member_id.clone();
        if let Err(error) = self.check_member(&member_id, request.instance_id.as_deref()) {
            return refuse(cx, ticket, error, &member_id);
        }
        let same = self.members.get(&member_id).is_some_and(|member| member.protocols == request.protocols);
        match self.state {
            GroupState::PreparingRebalance => self.update_member(cx, ticket, request, &member_id),
            // The answer to its last JoinGroup was lost.
            GroupState::CompletingRebalance if same => self.tell(cx, ticket, &member_id),
            // A leader may want to assign anew for reasons of its own, such as more partitions.
            GroupState::Stable if same && !self.is_leader(&member_id) => self.tell(cx, ticket, &member_id),
            GroupState::CompletingRebalance | GroupState::Stable => {
                self.update_member(cx, ticket, request, &member_id);
            }
            GroupState::Empty | GroupState::Dead => {
                refuse(cx, ticket, ErrorCode::UnknownMemberId, &member_id);
            }
        }
    }

    fn tell(&self, cx: &mut Context<'_>, ticket: Ticket, member_id: &str) {
        cx.out.answers.push(Answer::Join { ticket, response: self.join_response(member_id) });
    }

    fn update_member(&mut self, cx: &mut Context<'_>, ticket: Ticket, request: JoinRequest, member_id: &str) {
        self.renew(cx, ticket, request, member_id);
        self.rebalance_or_complete(cx);
    }

    /// Takes over what a member says of itself, and lets its request wait.
    pub(super) fn renew(
        &mut self,
        cx: &mut Context<'_>,
        ticket: Ticket,
        request: JoinRequest,
        member_id: &str,
    ) {
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        member.session_timeout = Millis::from_wire(request.session_timeout);
        member.rebalance_timeout = rebalance_timeout(&request);
        member.protocols = request.protocols;
        if let Some(before) = member.join.replace(ticket) {
            // Its client has given up on that request, but whoever holds it must not wait for ever.
            refuse(cx, before, ErrorCode::RebalanceInProgress, member_id);
        }
    }
}

fn refuse(cx: &mut Context<'_>, ticket: Ticket, error: ErrorCode, member_id: &str) {
    cx.out.answers.push(Answer::Join { ticket, response: JoinResponse::error(error, member_id) });
}

fn rebalance_timeout(request: &JoinRequest) -> Millis {
    let as_long_as_session = request.rebalance_timeout < 0;
    Millis::from_wire(if as_long_as_session { request.session_timeout } else { request.rebalance_timeout })
}
