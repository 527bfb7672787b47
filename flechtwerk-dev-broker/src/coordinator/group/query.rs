//! OffsetFetch, ListGroups and DescribeGroups.

use std::collections::HashSet;

use super::Groups;
use super::member::Member;
use super::types::{DescribedGroup, DescribedMember, FetchedOffset, GroupState, ListedGroup};
use crate::coordinator::{ErrorCode, TopicPartition};

impl Groups {
    /// OffsetFetch for some partitions, in their order, or for all that have an offset (`None`). A partition without an offset has
    /// offset -1 and no error.
    pub fn fetch_offsets(
        &self,
        group: &str,
        partitions: Option<&[TopicPartition]>,
        require_stable: bool,
    ) -> Vec<FetchedOffset> {
        let offsets = self.groups.get(group).map(|group| &group.offsets);
        let fetch = |partition: &TopicPartition| {
            let unstable = require_stable && offsets.is_some_and(|offsets| offsets.has_pending(partition));
            let stored = offsets.and_then(|offsets| offsets.get(partition)).filter(|_| !unstable);
            FetchedOffset {
                partition: partition.clone(),
                offset: stored.map_or(-1, |stored| stored.offset),
                leader_epoch: stored.map_or(-1, |stored| stored.leader_epoch),
                metadata: stored.map(|stored| stored.metadata.clone()).unwrap_or_default(),
                error: if unstable { ErrorCode::UnstableOffsetCommit } else { ErrorCode::None },
            }
        };
        match (partitions, offsets) {
            (Some(partitions), _) => partitions.iter().map(fetch).collect(),
            (None, Some(offsets)) => offsets.committed().map(|(partition, _)| fetch(partition)).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// ListGroups, in the order of their names. The filters are names as on the wire, in any case; an empty one lets everything pass.
    pub fn list(&self, states: &[String], types: &[String]) -> Vec<ListedGroup> {
        let lower = |filter: &[String]| -> HashSet<String> {
            filter.iter().map(|name| name.to_ascii_lowercase()).collect()
        };
        let (states, types) = (lower(states), lower(types));
        let passes = |filter: &HashSet<String>, name: &str| {
            filter.is_empty() || filter.contains(&name.to_ascii_lowercase())
        };
        if !passes(&types, ListedGroup::TYPE) {
            return Vec::new();
        }
        let wanted = self.groups.iter().filter(|(_, group)| passes(&states, group.state.name()));
        wanted
            .map(|(name, group)| ListedGroup {
                group: name.clone(),
                protocol_type: group.protocol_type.clone().unwrap_or_default(),
                state: group.state,
            })
            .collect()
    }

    /// DescribeGroups, for one group. `None` if there is no such group, which versions below 6 answer as one in state `Dead`
    /// without error ([`DescribedGroup::dead`]).
    pub fn describe(&self, group: &str) -> Option<DescribedGroup> {
        let found = self.groups.get(group)?;
        let is_stable = found.is(GroupState::Stable);
        let member = |(member_id, member): (&String, &Member)| {
            let metadata = member.metadata(found.protocol.as_deref().filter(|_| is_stable));
            DescribedMember {
                member_id: member_id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                metadata,
                assignment: member.assignment.clone(),
            }
        };
        Some(DescribedGroup {
            group: group.to_owned(),
            state: found.state,
            protocol_type: found.protocol_type.clone().unwrap_or_default(),
            protocol: found.protocol.clone().filter(|_| is_stable).unwrap_or_default(),
            generation: found.generation,
            leader: found.leader.clone(),
            members: found.members.iter().map(member).collect(),
        })
    }
}
