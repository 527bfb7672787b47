//! Static members (KIP-345): a member that comes back under its instance id takes the place it had, and fences who had it.

use super::Context;
use super::state::Group;
use super::types::{GroupState, JoinRequest, JoinResponse, SyncResponse};
use crate::coordinator::{Answer, ErrorCode, Ticket};

impl Group {
    /// A static member joins without an id while another member id stands for its instance id.
    pub(super) fn replace_static(
        &mut self,
        cx: &mut Context<'_>,
        ticket: Ticket,
        request: JoinRequest,
        old: &str,
        new: String,
    ) {
        let leader_before = self.leader.clone();
        let knows_skip_assignment = request.knows_skip_assignment;
        let Some(mut member) = self.members.remove(old) else {
            return;
        };
        if let Some(ticket) = member.join.take() {
            let response = JoinResponse::error(ErrorCode::FencedInstanceId, old);
            cx.out.answers.push(Answer::Join { ticket, response });
        }
        if let Some(ticket) = member.sync.take() {
            let response = SyncResponse::error(ErrorCode::FencedInstanceId);
            cx.out.answers.push(Answer::Sync { ticket, response });
        }
        member.is_new = false;
        member.reset_session(cx.now.since_start);
        if let Some(instance_id) = &member.instance_id {
            self.instances.insert(instance_id.clone(), new.clone());
        }
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        if self.pending_sync.remove(old) {
            self.pending_sync.insert(new.clone());
        }
        self.members.insert(new.clone(), member);
        self.renew(cx, ticket, request, &new);
        match self.state {
            // Nothing changes for the others: it goes on with the assignment of the one before.
            GroupState::Stable if self.protocol == self.select_protocol() => {
                self.keep(cx);
                self.let_in(cx, &new, leader_before, knows_skip_assignment);
            }
            // The leader may have been told of the old id, and would assign to it.
            _ => self.rebalance_or_complete(cx),
        }
    }

    /// Answers a static member that came back without a rebalance.
    fn let_in(
        &mut self,
        cx: &mut Context<'_>,
        member_id: &str,
        leader_before: Option<String>,
        knows_skip_assignment: bool,
    ) {
        let mut response = self.join_response(member_id);
        if knows_skip_assignment {
            response.skip_assignment = self.is_leader(member_id);
        } else {
            // A client that knows of no skipping would assign if it were told that it leads. It learns of a leader that is gone.
            response.leader = leader_before.unwrap_or_default();
            response.members.clear();
        }
        if let Some(ticket) = self.members.get_mut(member_id).and_then(|member| member.join.take()) {
            cx.out.answers.push(Answer::Join { ticket, response });
        }
    }
}
