//! OffsetCommit, TxnOffsetCommit, the end of a transaction's offsets, and what deletes offsets.

use super::Groups;
use super::state::Group;
use super::types::{CommitRequest, GroupState, OffsetCommit, TxnCommitRequest};
use crate::coordinator::journal::{Entry, StoredOffset};
use crate::coordinator::{Effects, ErrorCode, Millis, Now, Producer, TopicPartition};

/// Who wants to commit.
struct Committer<'a> {
    generation: i32,
    member_id: &'a str,
    instance_id: Option<&'a str>,
    transactional: bool,
}

impl Committer<'_> {
    /// Whether the group takes offsets from it.
    fn check(&self, group: Option<&Group>) -> Result<(), ErrorCode> {
        let Some(group) = group else {
            // A consumer that is in no group: the group is there for its offsets from now on.
            return if self.generation < 0 { Ok(()) } else { Err(ErrorCode::IllegalGeneration) };
        };
        if self.generation < 0 && group.is(GroupState::Empty) {
            return Ok(());
        }
        if self.generation >= 0 || !self.member_id.is_empty() || self.instance_id.is_some() {
            group.check_member(self.member_id, self.instance_id)?;
            if self.generation != group.generation {
                return Err(ErrorCode::IllegalGeneration);
            }
        } else if !self.transactional && !group.is(GroupState::Empty) {
            // Producers from before KIP-447 say nothing of themselves, and are fenced by their epoch alone; consumers always do.
            return Err(ErrorCode::UnknownMemberId);
        }
        if !self.transactional && group.is(GroupState::CompletingRebalance) {
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(())
    }
}

impl Groups {
    /// OffsetCommit: one code for each offset, in their order.
    pub fn commit_offsets(&mut self, now: Now, request: CommitRequest, out: &mut Effects) -> Vec<ErrorCode> {
        let committer = Committer {
            generation: request.generation,
            member_id: &request.member_id,
            instance_id: request.instance_id.as_deref(),
            transactional: false,
        };
        if let Err(error) = committer.check(self.groups.get(&request.group)) {
            return vec![error; request.offsets.len()];
        }
        if let Some(group) = self.groups.get_mut(&request.group)
            && matches!(group.state, GroupState::Stable | GroupState::PreparingRebalance)
            && let Some(member) = group.members.get_mut(&request.member_id)
        {
            // A commit is a sign of life.
            member.reset_session(now.since_start);
        }
        self.store(now, request.offsets, out, |partition, offset| Entry::Offset {
            group: request.group.clone(),
            partition,
            offset,
        })
    }

    /// TxnOffsetCommit: one code for each offset, in their order. The offsets are pending until the transaction is completed. Whether
    /// the producer may do so is for the caller to ask first, by [`Transactions::verify_group`](super::super::Transactions::verify_group).
    pub fn txn_commit_offsets(
        &mut self,
        now: Now,
        request: TxnCommitRequest,
        out: &mut Effects,
    ) -> Vec<ErrorCode> {
        let committer = Committer {
            generation: request.generation,
            member_id: &request.member_id,
            instance_id: request.instance_id.as_deref(),
            transactional: true,
        };
        let group = self.groups.get(&request.group);
        let fenced = group
            .and_then(|group| group.offsets.pending_epoch(request.producer.id))
            .is_some_and(|epoch| request.producer.epoch < epoch);
        let error = if request.group.is_empty() {
            Err(ErrorCode::InvalidGroupId)
        } else if fenced {
            Err(ErrorCode::InvalidProducerEpoch)
        } else {
            committer.check(group)
        };
        if let Err(error) = error {
            return vec![error; request.offsets.len()];
        }
        self.store(now, request.offsets, out, |partition, offset| Entry::PendingOffset {
            group: request.group.clone(),
            producer: request.producer,
            partition,
            offset,
        })
    }

    fn store(
        &mut self,
        now: Now,
        offsets: Vec<OffsetCommit>,
        out: &mut Effects,
        entry: impl Fn(TopicPartition, StoredOffset) -> Entry,
    ) -> Vec<ErrorCode> {
        let mut codes = Vec::with_capacity(offsets.len());
        for commit in offsets {
            let metadata = commit.metadata.unwrap_or_default();
            // Kafka counts in units of UTF-16.
            if metadata.len() > self.settings.max_offset_metadata
                && metadata.encode_utf16().count() > self.settings.max_offset_metadata
            {
                codes.push(ErrorCode::OffsetMetadataTooLarge);
                continue;
            }
            let offset = StoredOffset {
                offset: commit.offset,
                leader_epoch: commit.leader_epoch,
                metadata,
                committed_at: now.wall,
                position: self.position.saturating_add(1),
            };
            self.change(entry(commit.partition, offset), out);
            codes.push(ErrorCode::None);
        }
        codes
    }

    /// Completes the pending offsets that a producer has in a group: they become the group's, or are dropped. Does nothing where none
    /// are pending, or those of a newer epoch, so it may be repeated.
    pub fn complete_txn_offsets(
        &mut self,
        _now: Now,
        group: &str,
        producer: Producer,
        commit: bool,
        out: &mut Effects,
    ) {
        let epoch = self.groups.get(group).and_then(|group| group.offsets.pending_epoch(producer.id));
        if epoch.is_some_and(|epoch| epoch <= producer.epoch) {
            self.change(
                Entry::PendingEnded { group: group.to_owned(), producer_id: producer.id, commit },
                out,
            );
        }
    }

    /// OffsetDelete: one code for each partition, in their order, or one for the whole request.
    pub fn delete_offsets(
        &mut self,
        _now: Now,
        group: &str,
        partitions: &[TopicPartition],
        out: &mut Effects,
    ) -> Result<Vec<ErrorCode>, ErrorCode> {
        if group.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let found = self.groups.get(group).ok_or(ErrorCode::GroupIdNotFound)?;
        if !found.is(GroupState::Empty) && !found.uses_consumer_protocol() {
            return Err(ErrorCode::NonEmptyGroup);
        }
        let mut codes = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let (subscribed, any) = match self.groups.get(group) {
                Some(found) => (found.is_subscribed(&partition.topic), found.offsets.has_any(partition)),
                None => (false, false),
            };
            if subscribed {
                codes.push(ErrorCode::GroupSubscribedToTopic);
                continue;
            }
            if any {
                self.change(
                    Entry::OffsetDeleted { group: group.to_owned(), partition: partition.clone() },
                    out,
                );
            }
            codes.push(ErrorCode::None);
        }
        Ok(codes)
    }

    /// Drops the offsets of a topic that was deleted, in all groups.
    pub fn drop_topic(&mut self, topic: &str, out: &mut Effects) {
        let mut entries = Vec::new();
        for (name, group) in &self.groups {
            for partition in group.offsets.partitions_of(topic) {
                entries.push(Entry::OffsetDeleted { group: name.clone(), partition });
            }
        }
        for entry in entries {
            self.change(entry, out);
        }
    }

    /// Drops offsets that have outlived their time, and groups that have nothing left.
    pub(super) fn expire_offsets(&mut self, now: Now, retention: Millis, out: &mut Effects) {
        let mut entries = Vec::new();
        for (name, group) in &self.groups {
            let mut anything_left = group.offsets.has_open_transactions() || !group.is(GroupState::Empty);
            for (partition, offset) in group.offsets.committed() {
                if is_expired(group, partition, offset, now, retention) {
                    let partition = partition.clone();
                    entries.push(Entry::OffsetDeleted { group: name.clone(), partition });
                } else {
                    anything_left = true;
                }
            }
            if !anything_left {
                entries.push(Entry::GroupDeleted { group: name.clone() });
            }
        }
        for entry in entries {
            self.change(entry, out);
        }
    }
}

/// Whether an offset's time is over: counted from when its group became empty, or from its commit where there is no such group.
fn is_expired(
    group: &Group,
    partition: &TopicPartition,
    offset: &StoredOffset,
    now: Now,
    retention: Millis,
) -> bool {
    let since = if group.protocol_type.is_none() {
        offset.committed_at
    } else if group.is(GroupState::Empty) {
        group.since
    } else if group.is(GroupState::Stable) && group.subscribed.is_some() {
        offset.committed_at
    } else {
        return false;
    };
    let age = u64::try_from(now.wall.saturating_sub(since)).unwrap_or(0);
    age >= retention.0 && !group.is_subscribed(&partition.topic) && !group.offsets.has_pending(partition)
}
