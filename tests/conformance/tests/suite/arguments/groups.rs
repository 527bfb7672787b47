//! Groups, their members and their offsets.

use flechtwerk_conformance::text;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::*;

use super::ranges::{group, one, partition, some, topic};
use super::{Given, Question, World, question};
use crate::dice::Dice;

pub(super) fn any(dice: &mut Dice, world: &World) -> Question {
    match dice.roll(16) {
        0..=2 => commit(dice, world),
        3..=5 => fetch(dice, world),
        6 => delete_offsets(dice, world),
        7 => find(dice, world),
        8..=9 => join(dice, world),
        10 => sync(dice, world),
        11 => heartbeat(dice, world),
        12 => leave(dice, world),
        13..=14 => describe(dice, world),
        _ => delete(dice, world),
    }
}

/// Who asks: nobody, someone unknown, or the member that there is.
fn member(dice: &mut Dice) -> impl Fn(&Given) -> String + Clone + 'static {
    let kind = dice.roll(5);
    move |given| match kind {
        0 => String::new(),
        1 => "nobody".to_owned(),
        2 => "m".repeat(1_000),
        _ => given.member.clone(),
    }
}

fn instance(dice: &mut Dice) -> Option<String> {
    (dice.roll(6) == 0).then(|| one(dice, &["", "fixed"]).to_owned())
}

fn generation(dice: &mut Dice) -> i32 {
    one(dice, &[1, 1, 1, -1, -1, 0, 2, -2, i32::MAX, i32::MIN])
}

fn commit(dice: &mut Dice, world: &World) -> Question {
    let version = 2 + dice.roll(7) as i16;
    let (group, who, generation) = (group(dice, world), member(dice), generation(dice));
    let instance = instance(dice).filter(|_| version >= 7);
    let topics = some(dice, |dice| {
        let name = topic(dice, world);
        let partitions = some(dice, |dice| {
            let metadata = match dice.roll(8) {
                0 => None,
                1 => Some("m".repeat(4096)),
                2 => Some("m".repeat(4097)),
                3 => Some("ü".repeat(4096)),
                _ => Some("note".to_owned()),
            };
            OffsetCommitRequestPartition::default()
                .with_partition_index(partition(dice))
                .with_committed_offset(one(dice, &[0, 1, 7, -1, -2, i64::MAX, i64::MIN]))
                .with_committed_leader_epoch(if version >= 6 {
                    one(dice, &[-1, 0, -5, i32::MAX])
                } else {
                    -1
                })
                .with_committed_metadata(metadata.map(|one| text(&one)))
        });
        OffsetCommitRequestTopic::default().with_name(text(&name).into()).with_partitions(partitions)
    });
    question((version, false), move |given| {
        OffsetCommitRequest::default()
            .with_group_id(text(&group).into())
            .with_generation_id_or_member_epoch(generation)
            .with_member_id(text(&who(given)))
            .with_group_instance_id(instance.as_deref().map(text))
            .with_topics(topics.clone())
    })
}

fn fetch(dice: &mut Dice, world: &World) -> Question {
    let version = 1 + dice.roll(7) as i16;
    let group = group(dice, world);
    let all = version >= 2 && dice.roll(4) == 0;
    let topics = some(dice, |dice| {
        let name = topic(dice, world);
        OffsetFetchRequestTopic::default()
            .with_name(text(&name).into())
            .with_partition_indexes(some(dice, partition))
    });
    let stable = version >= 7 && dice.roll(2) == 0;
    question((version, true), move |_| {
        OffsetFetchRequest::default()
            .with_group_id(text(&group).into())
            .with_topics((!all).then(|| topics.clone()))
            .with_require_stable(stable)
    })
}

fn delete_offsets(dice: &mut Dice, world: &World) -> Question {
    let group = group(dice, world);
    let topics = some(dice, |dice| {
        let name = topic(dice, world);
        let partitions = some(dice, partition).into_iter();
        let partitions =
            partitions.map(|index| OffsetDeleteRequestPartition::default().with_partition_index(index));
        OffsetDeleteRequestTopic::default()
            .with_name(text(&name).into())
            .with_partitions(partitions.collect())
    });
    question((0, false), move |_| {
        OffsetDeleteRequest::default().with_group_id(text(&group).into()).with_topics(topics.clone())
    })
}

fn find(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(5) as i16;
    let kind = if version >= 1 { one(dice, &[0, 0, 1, 1, 2, -1, 9]) } else { 0 };
    let keys = some(dice, |dice| group(dice, world));
    question((version, true), move |_| {
        let request = FindCoordinatorRequest::default().with_key_type(kind);
        if version >= 4 {
            return request.with_coordinator_keys(keys.iter().map(|key| text(key)).collect());
        }
        request.with_key(text(keys.first().map_or("", String::as_str)))
    })
}

fn join(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(6) as i16;
    // A join of the member that there is would wait for no one; one of a stranger would wait for it.
    let group = match dice.roll(4) {
        0 => String::new(),
        1 => world.groups[1].clone(),
        _ => world.groups[2].clone(),
    };
    let who = one(dice, &["nobody", "nobody", ""]);
    let session = one(dice, &[10_000, 0, -1, 999, 1_800_001, i32::MAX, i32::MIN]);
    let valid = (1_000..=1_800_000).contains(&session);
    // An unknown member, or nothing would answer it alike.
    let who = if valid { "nobody" } else { who };
    let kind = one(dice, &["consumer", "consumer", "", "other"]);
    let protocols = some(dice, |dice| {
        let metadata = one(dice, &[&b""[..], b"\0\0", b"\0\x01\xff\xff\xff\xff"]);
        JoinGroupRequestProtocol::default()
            .with_name(text(one(dice, &["range", "", "other"])))
            .with_metadata(metadata.into())
    });
    question((version, false), move |_| {
        JoinGroupRequest::default()
            .with_group_id(text(&group).into())
            .with_session_timeout_ms(session)
            .with_rebalance_timeout_ms(if version >= 1 { session } else { -1 })
            .with_member_id(text(who))
            .with_protocol_type(text(kind))
            .with_protocols(protocols.clone())
    })
}

fn sync(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(4) as i16;
    let (group, who, generation) = (group(dice, world), member(dice), generation(dice));
    let instance = instance(dice).filter(|_| version >= 3);
    question((version, false), move |given| {
        SyncGroupRequest::default()
            .with_group_id(text(&group).into())
            .with_generation_id(generation)
            .with_member_id(text(&who(given)))
            .with_group_instance_id(instance.as_deref().map(text))
    })
}

fn heartbeat(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(5) as i16;
    let (group, who, generation) = (group(dice, world), member(dice), generation(dice));
    let instance = instance(dice).filter(|_| version >= 3);
    question((version, false), move |given| {
        HeartbeatRequest::default()
            .with_group_id(text(&group).into())
            .with_generation_id(generation)
            .with_member_id(text(&who(given)))
            .with_group_instance_id(instance.as_deref().map(text))
    })
}

fn leave(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(6) as i16;
    let group = group(dice, world);
    let members = some(dice, |dice| (one(dice, &["", "nobody"]), instance(dice)));
    question((version, false), move |_| {
        let request = LeaveGroupRequest::default().with_group_id(text(&group).into());
        if version < 3 {
            return request.with_member_id(text("nobody"));
        }
        let members = members.iter().map(|(id, instance)| {
            MemberIdentity::default()
                .with_member_id(text(id))
                .with_group_instance_id(instance.as_deref().map(text))
        });
        request.with_members(members.collect())
    })
}

fn describe(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(6) as i16;
    let mut groups = some(dice, |dice| group(dice, world));
    // The group without a name is the same for all checks.
    groups.retain(|name| !name.is_empty());
    question((version, true), move |_| {
        DescribeGroupsRequest::default().with_groups(groups.iter().map(|name| text(name).into()).collect())
    })
}

fn delete(dice: &mut Dice, world: &World) -> Question {
    let version = dice.roll(3) as i16;
    let groups = some(dice, |dice| group(dice, world));
    question((version, false), move |_| {
        DeleteGroupsRequest::default()
            .with_groups_names(groups.iter().map(|name| text(name).into()).collect())
    })
}
