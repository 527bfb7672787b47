//! What a group is after its broker was killed and started again.

use super::*;

#[test]
fn a_stable_group_goes_on_after_a_restart() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    f.commit(&leader, generation, 5);
    let before = f.describe();
    f.restart(3_000);
    assert_eq!(f.describe(), before);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::None);
    assert_eq!(f.heartbeat(&follower, generation), ErrorCode::None);
    assert_eq!(f.sync_now(sync(&follower, generation, &[])).assignment, Bytes::from("F"));
    assert_eq!(f.commit(&leader, generation, 6), ErrorCode::None);
    assert_eq!(f.join_now(dynamic(&follower)).generation, generation, "unchanged, it goes on");
}

#[test]
fn members_have_a_session_from_the_restart_on() {
    let mut f = Fixture::new();
    let (leader, _, generation) = f.pair();
    f.pass(9_000);
    f.restart(100_000);
    f.pass(9_999);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::None);
    f.pass(1);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::RebalanceInProgress, "the other is gone");
}

#[test]
fn a_generation_without_assignment_is_begun_again() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    f.join(dynamic(&leader));
    f.join(dynamic(&follower));
    assert_eq!(f.describe().generation, generation + 1);
    f.restart(0);
    assert_eq!((f.state(), f.describe().generation), (GroupState::Stable, generation));
    assert_eq!(f.heartbeat(&leader, generation + 1), ErrorCode::IllegalGeneration);
    f.join(dynamic(&leader));
    assert_eq!(f.state(), GroupState::PreparingRebalance);
}

#[test]
fn static_members_keep_their_place_over_a_restart() {
    let mut f = Fixture::new();
    let first = f.join_now(fixed("", "i"));
    f.sync_now(sync(&first.member_id, first.generation, &[(first.member_id.as_str(), "S")]));
    let back = f.join_now(fixed("", "i"));
    f.restart(0);
    let fenced = f.groups.heartbeat(f.now, "g", &first.member_id, Some("i"), first.generation);
    assert_eq!(fenced, ErrorCode::FencedInstanceId);
    let live = f.groups.heartbeat(f.now, "g", &back.member_id, Some("i"), first.generation);
    assert_eq!(live, ErrorCode::None);
    let again = f.join_now(fixed("", "i"));
    assert_eq!(again.generation, first.generation);
}

#[test]
fn what_is_consumed_is_known_after_a_restart() {
    let mut f = Fixture::new();
    f.single();
    f.restart(0);
    let partitions = [TopicPartition::new("t", 0), TopicPartition::new("u", 0)];
    let mut out = Effects::new();
    let codes = f.groups.delete_offsets(f.now, "g", &partitions, &mut out).unwrap();
    assert_eq!(codes, [ErrorCode::GroupSubscribedToTopic, ErrorCode::None]);
}

#[test]
fn what_is_deleted_stays_deleted() {
    let mut f = Fixture::new();
    let (member, generation) = f.single();
    f.commit(&member, generation, 1);
    f.leave(&member, None);
    let mut out = Effects::new();
    f.groups.delete_group("g", &mut out);
    f.take(out);
    f.restart(0);
    assert!(f.groups.describe("g").is_none());
    assert!(f.groups.snapshot().is_empty());
}

#[test]
fn pending_offsets_are_pending_after_a_restart() {
    let mut f = Fixture::new();
    let producer = Producer::new(1, 4);
    f.txn_commit(producer, commit(0, 5));
    f.commit("", -1, 9);
    f.txn_commit(producer, commit(1, 5));
    f.restart(0);
    assert_eq!(f.offset(1, true), (-1, ErrorCode::UnstableOffsetCommit));
    assert_eq!(f.txn_commit(Producer::new(1, 3), commit(1, 6)), ErrorCode::InvalidProducerEpoch);
    f.complete(producer, true);
    assert_eq!(f.offset(0, true), (9, ErrorCode::None), "which came later is known after a restart");
    assert_eq!(f.offset(1, true), (5, ErrorCode::None));
}

#[test]
fn no_member_id_comes_twice_over_a_restart_with_another_seed() {
    let mut f = Fixture::new();
    let (member, _) = f.single();
    f.settings.member_id_seed = 9;
    f.restart(0);
    let ticket = f.join(dynamic(""));
    f.join(dynamic(&member));
    assert_ne!(f.joined(ticket).unwrap().member_id, member);
}
