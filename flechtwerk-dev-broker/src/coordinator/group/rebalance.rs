//! Rebalances: how one starts, when it is over, and what happens to those that miss it.

use super::Context;
use super::state::{FirstRebalance, Group, JoinTimer};
use super::types::{GroupState, SyncResponse};
use crate::coordinator::{Answer, ErrorCode, Millis};

impl Group {
    /// Starts a rebalance if none is going on, and ends the one that is if nobody is missing any more.
    pub(super) fn rebalance_or_complete(&mut self, cx: &mut Context<'_>) {
        match self.state {
            GroupState::Empty | GroupState::CompletingRebalance | GroupState::Stable => self.prepare(cx),
            GroupState::PreparingRebalance => self.complete_if_all_joined(cx),
            GroupState::Dead => {}
        }
    }

    /// Ends the preparation if nobody is missing, but for a first rebalance, which waits for more to come.
    pub(super) fn complete_if_all_joined(&mut self, cx: &mut Context<'_>) {
        let is_first = self.join_timer.as_ref().is_some_and(|timer| timer.first.is_some());
        if self.is(GroupState::PreparingRebalance) && !is_first && self.has_all_joined() {
            self.complete_join(cx);
        }
    }

    pub(super) fn prepare(&mut self, cx: &mut Context<'_>) {
        if self.is(GroupState::CompletingRebalance) {
            for member in self.members.values_mut() {
                member.assignment = Default::default();
            }
            self.answer_syncs(cx, ErrorCode::RebalanceInProgress);
        }
        self.pending_sync.clear();
        self.sync_timer = None;
        let is_first = self.is(GroupState::Empty);
        self.enter(GroupState::PreparingRebalance, cx.now);
        let delay = cx.settings.initial_rebalance_delay;
        if is_first && delay > Millis(0) {
            let remaining = Millis(self.rebalance_timeout().0.saturating_sub(delay.0));
            let first = Some(FirstRebalance { remaining, member_added: false });
            self.join_timer = Some(JoinTimer { at: cx.now.since_start.after(delay), first });
        } else if is_first || self.has_all_joined() {
            self.complete_join(cx);
        } else {
            self.wait_for_members(cx);
        }
    }

    fn wait_for_members(&mut self, cx: &Context<'_>) {
        let at = cx.now.since_start.after(self.rebalance_timeout());
        self.join_timer = Some(JoinTimer { at, first: None });
    }

    /// Everyone has joined, or the time for it is over.
    pub(super) fn complete_join(&mut self, cx: &mut Context<'_>) {
        self.join_timer = None;
        let missing: Vec<String> = self
            .members
            .iter()
            .filter(|(_, member)| member.join.is_none() && member.instance_id.is_none())
            .map(|(member_id, _)| member_id.clone())
            .collect();
        for member_id in missing {
            self.remove(cx, &member_id);
        }
        if self.members.is_empty() {
            self.become_empty(cx);
        } else if self.elect_leader() {
            self.begin_generation(cx);
        } else {
            // Static members alone, and none has come back. Their sessions will end, or one comes.
            self.wait_for_members(cx);
        }
    }

    /// Whether there is a leader among those that have joined. One that has not makes way for one that has.
    fn elect_leader(&mut self) -> bool {
        let has_joined = |member_id: &String| self.members.get(member_id).is_some_and(|m| m.join.is_some());
        if self.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        match self.members.keys().find(|member_id| has_joined(member_id)).cloned() {
            Some(member_id) => {
                self.leader = Some(member_id);
                true
            }
            None => false,
        }
    }

    fn next_generation(&mut self) {
        self.generation = self.generation.checked_add(1).unwrap_or(1);
    }

    fn become_empty(&mut self, cx: &mut Context<'_>) {
        self.next_generation();
        self.protocol = None;
        self.leader = None;
        self.note_subscriptions();
        self.enter(GroupState::Empty, cx.now);
        self.keep(cx);
    }

    fn begin_generation(&mut self, cx: &mut Context<'_>) {
        self.next_generation();
        self.protocol = self.select_protocol();
        self.note_subscriptions();
        self.enter(GroupState::CompletingRebalance, cx.now);
        let member_ids: Vec<String> = self.members.keys().cloned().collect();
        for member_id in &member_ids {
            let response = self.join_response(member_id);
            if let Some(member) = self.members.get_mut(member_id) {
                member.is_new = false;
                member.reset_session(cx.now.since_start);
                if let Some(ticket) = member.join.take() {
                    cx.out.answers.push(Answer::Join { ticket, response });
                }
            }
        }
        self.pending_sync = member_ids.into_iter().collect();
        self.sync_timer = Some(cx.now.since_start.after(self.rebalance_timeout()));
    }

    /// Answers all that wait for their assignment.
    pub(super) fn answer_syncs(&mut self, cx: &mut Context<'_>, error: ErrorCode) {
        for member in self.members.values_mut() {
            let Some(ticket) = member.sync.take() else {
                continue;
            };
            let response = if error.is_none() {
                SyncResponse {
                    error,
                    protocol_type: self.protocol_type.clone(),
                    protocol: self.protocol.clone(),
                    assignment: member.assignment.clone(),
                }
            } else {
                SyncResponse::error(error)
            };
            cx.out.answers.push(Answer::Sync { ticket, response });
            // While it waited its session could end without consequence.
            member.reset_session(cx.now.since_start);
        }
    }

    /// Does all that is due by now.
    pub(super) fn tick(&mut self, cx: &mut Context<'_>) {
        // Every step takes a deadline away, and puts new ones only into the future.
        while self.next_deadline().is_some_and(|at| at <= cx.now.since_start) {
            let now = cx.now.since_start;
            let lapsed = |at: &Millis| *at <= now;
            if let Some(member_id) = first(self.pending_join.iter().filter(|(_, at)| lapsed(at))) {
                self.remove(cx, &member_id);
                self.complete_after_removal(cx);
            } else if let Some(member_id) =
                first(self.members.iter().filter(|(_, member)| member.session.as_ref().is_some_and(lapsed)))
            {
                self.end_session(cx, &member_id);
            } else if let Some(timer) = self.join_timer.take_if(|timer| timer.at <= now) {
                self.end_preparation(cx, timer);
            } else if self.sync_timer.take_if(|at| *at <= now).is_some() {
                self.expire_syncs(cx);
            } else {
                return;
            }
        }
    }

    /// The session of a member is over, unless its request waits for others: then its time begins when it is answered. A new member
    /// waits as long as it may.
    fn end_session(&mut self, cx: &mut Context<'_>, member_id: &str) {
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        member.session = None;
        if member.is_waiting() && !member.is_new {
            return;
        }
        self.remove(cx, member_id);
        if matches!(self.state, GroupState::Stable | GroupState::CompletingRebalance) {
            self.prepare(cx);
        } else {
            self.complete_after_removal(cx);
        }
    }

    /// Somebody who was missing is out: perhaps all others are here.
    fn complete_after_removal(&mut self, cx: &mut Context<'_>) {
        if self.is(GroupState::PreparingRebalance) && self.has_all_joined() {
            self.complete_join(cx);
        }
    }

    fn end_preparation(&mut self, cx: &mut Context<'_>, timer: JoinTimer) {
        if !self.is(GroupState::PreparingRebalance) {
            return;
        }
        match timer.first {
            // A first rebalance is put off as long as members keep coming.
            Some(first) if first.member_added && first.remaining > Millis(0) => {
                let delay = cx.settings.initial_rebalance_delay.min(first.remaining).max(Millis(1));
                let remaining = Millis(first.remaining.0.saturating_sub(delay.0));
                let first = Some(FirstRebalance { remaining, member_added: false });
                self.join_timer = Some(JoinTimer { at: cx.now.since_start.after(delay), first });
            }
            _ => self.complete_join(cx),
        }
    }

    /// Throws out those that have not asked for their assignment.
    fn expire_syncs(&mut self, cx: &mut Context<'_>) {
        let in_generation = matches!(self.state, GroupState::CompletingRebalance | GroupState::Stable);
        if !in_generation || self.pending_sync.is_empty() {
            return;
        }
        for member_id in std::mem::take(&mut self.pending_sync) {
            self.remove(cx, &member_id);
        }
        self.prepare(cx);
    }
}

fn first<'a, T: 'a>(mut found: impl Iterator<Item = (&'a String, T)>) -> Option<String> {
    found.next().map(|(member_id, _)| member_id.clone())
}
