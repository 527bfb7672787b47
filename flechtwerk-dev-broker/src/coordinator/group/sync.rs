//! SyncGroup, Heartbeat and LeaveGroup: what members ask of a generation they belong to.

use std::collections::HashMap;

use super::Context;
use super::state::Group;
use super::types::{GroupState, LeavingMember, SyncRequest, SyncResponse};
use crate::coordinator::{Answer, ErrorCode, Now, Ticket};

impl Group {
    pub(super) fn sync(&mut self, cx: &mut Context<'_>, ticket: Ticket, request: SyncRequest) {
        let answer = |cx: &mut Context<'_>, response| cx.out.answers.push(Answer::Sync { ticket, response });
        if let Err(error) = self.check_sync(&request) {
            return answer(cx, SyncResponse::error(error));
        }
        self.pending_sync.remove(&request.member_id);
        if self.pending_sync.is_empty() {
            self.sync_timer = None;
        }
        let Some(member) = self.members.get_mut(&request.member_id) else {
            return answer(cx, SyncResponse::error(ErrorCode::UnknownMemberId));
        };
        if self.state == GroupState::Stable {
            let response = SyncResponse {
                error: ErrorCode::None,
                protocol_type: self.protocol_type.clone(),
                protocol: self.protocol.clone(),
                assignment: member.assignment.clone(),
            };
            return answer(cx, response);
        }
        if let Some(before) = member.sync.replace(ticket) {
            // Its client has given up on that request, but whoever holds it must not wait for ever.
            let response = SyncResponse::error(ErrorCode::RebalanceInProgress);
            cx.out.answers.push(Answer::Sync { ticket: before, response });
        }
        if self.is_leader(&request.member_id) {
            self.assign(cx, request);
        }
    }

    fn check_sync(&self, request: &SyncRequest) -> Result<(), ErrorCode> {
        if self.is(GroupState::Empty) {
            return Err(ErrorCode::UnknownMemberId);
        }
        self.check_member(&request.member_id, request.instance_id.as_deref())?;
        let differs =
            |given: &Option<String>, own: &Option<String>| given.is_some() && own.is_some() && given != own;
        if request.generation != self.generation {
            Err(ErrorCode::IllegalGeneration)
        } else if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol, &self.protocol)
        {
            Err(ErrorCode::InconsistentGroupProtocol)
        } else if self.is(GroupState::PreparingRebalance) {
            Err(ErrorCode::RebalanceInProgress)
        } else {
            Ok(())
        }
    }

    /// The leader's assignment: each member that waits gets its own, and the others will when they ask.
    fn assign(&mut self, cx: &mut Context<'_>, request: SyncRequest) {
        let mut assignments: HashMap<_, _> = request.assignments.into_iter().collect();
        for (member_id, member) in &mut self.members {
            member.assignment = assignments.remove(member_id).unwrap_or_default();
        }
        self.enter(GroupState::Stable, cx.now);
        self.keep(cx);
        self.answer_syncs(cx, ErrorCode::None);
    }

    pub(super) fn heartbeat(
        &mut self,
        now: Now,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> ErrorCode {
        if let Err(error) = self.check_member(member_id, instance_id) {
            return error;
        }
        if generation != self.generation {
            return ErrorCode::IllegalGeneration;
        }
        match (self.state, self.members.get_mut(member_id)) {
            (GroupState::Empty | GroupState::Dead, _) | (_, None) => ErrorCode::UnknownMemberId,
            (GroupState::PreparingRebalance, Some(member)) => {
                member.reset_session(now.since_start);
                ErrorCode::RebalanceInProgress
            }
            (GroupState::CompletingRebalance | GroupState::Stable, Some(member)) => {
                member.reset_session(now.since_start);
                ErrorCode::None
            }
        }
    }

    pub(super) fn leave(&mut self, cx: &mut Context<'_>, members: &[LeavingMember]) -> Vec<ErrorCode> {
        let codes: Vec<ErrorCode> = members.iter().map(|member| self.leave_one(cx, member)).collect();
        if codes.iter().any(|code| code.is_none()) {
            match self.state {
                GroupState::Stable | GroupState::CompletingRebalance => self.prepare(cx),
                GroupState::PreparingRebalance => self.complete_if_all_joined(cx),
                GroupState::Empty | GroupState::Dead => {}
            }
        }
        codes
    }

    fn leave_one(&mut self, cx: &mut Context<'_>, leaving: &LeavingMember) -> ErrorCode {
        let instance_id = leaving.instance_id.as_deref();
        // An administrator knows the instance id alone.
        if leaving.member_id.is_empty() {
            return match instance_id.and_then(|instance_id| self.instances.get(instance_id)).cloned() {
                Some(member_id) => {
                    self.remove(cx, &member_id);
                    ErrorCode::None
                }
                None => ErrorCode::UnknownMemberId,
            };
        }
        if !self.pending_join.contains_key(&leaving.member_id)
            && let Err(error) = self.check_member(&leaving.member_id, instance_id)
        {
            return error;
        }
        self.remove(cx, &leaving.member_id);
        ErrorCode::None
    }
}
