//! What outlives the broker: a group's membership as of its last stable generation, and its offsets.
//!
//! As in Kafka a generation that has begun but has no assignment yet is not kept: after a restart the one before goes on, and its
//! members begin the next one again.

use std::sync::Arc;

use super::member::Member;
use super::state::Group;
use super::types::{GroupState, JoinProtocol};
use super::{Context, Groups};
use crate::coordinator::journal::{Entry, GroupRecord, MemberRecord};
use crate::coordinator::{Effects, Millis, Now, Record};

impl Group {
    /// Puts the membership into the journal.
    pub(super) fn keep(&mut self, cx: &mut Context<'_>) {
        let value = self.note_durable();
        cx.out.records.push(Entry::Group { group: cx.name.to_owned(), value }.into());
    }

    /// The membership as it is to be in the journal from now on.
    pub(super) fn note_durable(&mut self) -> Arc<GroupRecord> {
        let member = |(member_id, member): (&String, &Member)| MemberRecord {
            member_id: member_id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            session_timeout: member.session_timeout.0,
            rebalance_timeout: member.rebalance_timeout.0,
            metadata: member.metadata(self.protocol.as_deref()),
            assignment: member.assignment.clone(),
        };
        let record = Arc::new(GroupRecord {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            since: self.since,
            members: self.members.iter().map(member).collect(),
        });
        self.durable = Some(record.clone());
        record
    }

    /// Takes over the membership from the journal. Its members have a session's time from now.
    fn restore(&mut self, record: &Arc<GroupRecord>, now: Now) {
        let offsets = std::mem::take(&mut self.offsets);
        *self = Self::new(record.since);
        self.offsets = offsets;
        self.generation = record.generation;
        self.protocol_type = record.protocol_type.clone();
        self.protocol = record.protocol.clone();
        self.durable = Some(record.clone());
        for kept in &record.members {
            let protocol = record.protocol.clone().unwrap_or_default();
            let mut member = Member {
                instance_id: kept.instance_id.clone(),
                client_id: kept.client_id.clone(),
                client_host: kept.client_host.clone(),
                session_timeout: Millis(kept.session_timeout),
                rebalance_timeout: Millis(kept.rebalance_timeout),
                protocols: vec![JoinProtocol { name: protocol, metadata: kept.metadata.clone() }],
                assignment: kept.assignment.clone(),
                join: None,
                sync: None,
                is_new: false,
                session: None,
            };
            member.reset_session(now.since_start);
            if let Some(instance_id) = &kept.instance_id {
                self.instances.insert(instance_id.clone(), kept.member_id.clone());
            }
            self.members.insert(kept.member_id.clone(), member);
        }
        if !self.members.is_empty() {
            self.state = GroupState::Stable;
            let leader = record.leader.clone().filter(|leader| self.members.contains_key(leader));
            self.leader = leader.or_else(|| self.members.keys().next().cloned());
        }
        self.note_subscriptions();
    }
}

impl Groups {
    /// Makes a change and puts it into the journal.
    pub(super) fn change(&mut self, entry: Entry, out: &mut Effects) {
        self.apply(&entry);
        out.records.push(entry.into());
    }

    /// Makes a change of offsets, or deletes a group. All that calls do to offsets comes through here, so what is read from the
    /// journal cannot differ from what was.
    fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Offset { group, partition, offset } => {
                self.position = self.position.max(offset.position);
                self.offsets_of(group, offset.committed_at).offsets.commit(partition, offset);
            }
            Entry::PendingOffset { group, producer, partition, offset } => {
                self.position = self.position.max(offset.position);
                let group = self.offsets_of(group, offset.committed_at);
                group.offsets.add_pending(*producer, partition, offset);
            }
            Entry::OffsetDeleted { group, partition } => {
                if let Some(group) = self.groups.get_mut(group) {
                    group.offsets.delete(partition);
                }
            }
            Entry::PendingEnded { group, producer_id, commit } => {
                if let Some(group) = self.groups.get_mut(group) {
                    group.offsets.end_pending(*producer_id, *commit);
                }
            }
            Entry::GroupDeleted { group } => {
                self.groups.remove(group);
            }
            Entry::Group { .. }
            | Entry::Transaction(_)
            | Entry::TransactionDeleted { .. }
            | Entry::NextProducerId(_) => {}
        }
    }

    /// The group, which is there from now on, if only for its offsets.
    fn offsets_of(&mut self, group: &str, at: i64) -> &mut Group {
        self.groups.entry(group.to_owned()).or_insert_with(|| Group::new(at))
    }

    /// Takes in what a record of the journal says.
    pub(in crate::coordinator) fn replay(&mut self, now: Now, record: &Record) {
        match record.entry() {
            Entry::Group { group, value } => self.offsets_of(group, value.since).restore(value, now),
            entry => self.apply(entry),
        }
    }

    /// The records that build the durable state again, no more than it needs.
    pub fn snapshot(&self) -> Vec<Record> {
        let mut entries = Vec::new();
        for (name, group) in &self.groups {
            let name = || name.clone();
            if let Some(value) = &group.durable {
                entries.push(Entry::Group { group: name(), value: value.clone() });
            }
            for (partition, offset) in group.offsets.committed() {
                let (partition, offset) = (partition.clone(), offset.clone());
                entries.push(Entry::Offset { group: name(), partition, offset });
            }
            for (producer, partition, offset) in group.offsets.pending() {
                let (partition, offset) = (partition.clone(), offset.clone());
                entries.push(Entry::PendingOffset { group: name(), producer, partition, offset });
            }
        }
        entries.into_iter().map(Record::from).collect()
    }
}
