//! Rebalances: what starts them, what ends them, and who is thrown out.

use super::*;

const LONG: u64 = REBALANCE as u64;

#[test]
fn a_new_member_waits_for_the_others_and_they_are_told_to_join() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    let third = f.join(dynamic(""));
    assert!(f.joined(third).is_none());
    assert_eq!(f.state(), GroupState::PreparingRebalance);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::RebalanceInProgress);
    let leading = f.join(dynamic(&leader));
    assert!(f.joined(leading).is_none());
    let following = f.join(dynamic(&follower));
    for ticket in [third, leading, following] {
        assert_eq!(f.joined(ticket).unwrap().generation, generation + 1);
    }
    let members: Vec<usize> =
        [leading, third, following].iter().map(|t| f.joined(*t).unwrap().members.len()).collect();
    assert_eq!(members, [3, 0, 0], "the leader stays, and it alone is told of all");
}

#[test]
fn members_that_do_not_rejoin_in_time_are_thrown_out() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    let waiting = f.join(dynamic(&leader));
    for _ in 0..8 {
        assert!(f.joined(waiting).is_none());
        assert_eq!(f.heartbeat(&follower, generation), ErrorCode::RebalanceInProgress);
        f.pass(LONG / 8);
    }
    let joined = f.joined(waiting).unwrap();
    assert_eq!((joined.generation, joined.members.len()), (generation + 1, 1));
    assert_eq!(f.heartbeat(&follower, generation + 1), ErrorCode::UnknownMemberId);
}

#[test]
fn a_leader_that_misses_the_rebalance_is_replaced() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    let waiting = f.join(JoinRequest {
        protocols: vec![protocol("range", subscription(&["t", "u"]))],
        ..dynamic(&follower)
    });
    for _ in 0..8 {
        assert_eq!(f.heartbeat(&leader, generation), ErrorCode::RebalanceInProgress);
        f.pass(LONG / 8);
    }
    assert_eq!(f.joined(waiting).unwrap().leader, follower);
}

#[test]
fn a_member_whose_session_ends_starts_a_rebalance() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    f.pass(6_000);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::None);
    f.pass(6_000);
    assert_eq!(f.state(), GroupState::PreparingRebalance);
    assert_eq!(f.heartbeat(&follower, generation), ErrorCode::UnknownMemberId);
    assert_eq!(f.join_now(dynamic(&leader)).generation, generation + 1);
}

#[test]
fn a_session_does_not_end_while_the_join_waits_for_others() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    let waiting = f.join(dynamic(&leader));
    for _ in 0..3 {
        f.pass(9_000);
        assert_eq!(f.heartbeat(&follower, generation), ErrorCode::RebalanceInProgress);
    }
    assert!(f.joined(waiting).is_none());
    let following = f.join(dynamic(&follower));
    assert_eq!(f.joined(waiting).unwrap().error, ErrorCode::None);
    assert_eq!(f.joined(following).unwrap().error, ErrorCode::None);
}

#[test]
fn a_new_member_does_not_wait_for_ever() {
    let mut f = Fixture::new();
    let slow = |member_id: &str| JoinRequest { rebalance_timeout: 1_000_000, ..dynamic(member_id) };
    let first = f.join_now(slow(""));
    let waiting = f.join(slow(""));
    for _ in 0..40 {
        f.heartbeat(&first.member_id, first.generation);
        f.pass(8_000);
    }
    assert_eq!(f.joined(waiting).unwrap().error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_leader_that_joins_again_starts_a_rebalance() {
    let mut f = Fixture::new();
    let (leader, _, _) = f.pair();
    f.join(dynamic(&leader));
    assert_eq!(f.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_follower_that_joins_again_unchanged_is_told_the_current_generation() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    let told = f.join_now(dynamic(&follower));
    assert_eq!((told.error, told.generation, told.leader), (ErrorCode::None, generation, leader));
    assert_eq!(f.state(), GroupState::Stable);
    assert_eq!(f.sync_now(sync(&follower, generation, &[])).assignment, Bytes::from("F"));
}

#[test]
fn a_follower_with_other_metadata_starts_a_rebalance() {
    let mut f = Fixture::new();
    let (_, follower, _) = f.pair();
    let changed = vec![protocol("range", subscription(&["t", "u"]))];
    f.join(JoinRequest { protocols: changed, ..dynamic(&follower) });
    assert_eq!(f.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_member_that_lost_its_join_answer_is_told_again() {
    let mut f = Fixture::new();
    let joined = f.join_now(dynamic(""));
    let again = f.join_now(dynamic(&joined.member_id));
    assert_eq!(again, joined);
    assert_eq!(f.state(), GroupState::CompletingRebalance);
}

#[test]
fn changed_metadata_before_the_assignment_starts_over() {
    let mut f = Fixture::new();
    let first = f.join_now(dynamic(""));
    let second = f.join(dynamic(""));
    f.join(dynamic(&first.member_id));
    let second = f.joined(second).unwrap();
    let waiting = f.sync(sync(&second.member_id, second.generation, &[]));
    let changed = vec![protocol("range", subscription(&["t", "u"]))];
    f.join(JoinRequest { protocols: changed, ..dynamic(&first.member_id) });
    assert_eq!(f.synced(waiting).unwrap().error, ErrorCode::RebalanceInProgress);
    assert_eq!(f.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_join_that_comes_twice_is_answered_twice() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    let lost = f.join(dynamic(&leader));
    let retried = f.join(dynamic(&leader));
    assert_eq!(f.joined(lost).unwrap().error, ErrorCode::RebalanceInProgress);
    assert!(f.joined(retried).is_none());
    f.join(dynamic(&follower));
    assert_eq!(f.joined(retried).unwrap().generation, generation + 1);
}

#[test]
fn an_assignment_is_the_leaders_alone_to_give() {
    let mut f = Fixture::new();
    let first = f.join_now(dynamic(""));
    let second = f.join(dynamic(""));
    f.join(dynamic(&first.member_id));
    let second = f.joined(second).unwrap();
    let stolen = [(second.member_id.as_str(), "all")];
    let waiting = f.sync(sync(&second.member_id, second.generation, &stolen));
    assert!(f.synced(waiting).is_none());
    f.sync_now(sync(&first.member_id, second.generation, &[]));
    let synced = f.synced(waiting).unwrap();
    assert_eq!((synced.error, synced.assignment.len()), (ErrorCode::None, 0));
    assert_eq!(synced.protocol.as_deref(), Some("range"));
    assert_eq!(synced.protocol_type.as_deref(), Some("consumer"));
}

#[test]
fn a_sync_is_refused_outside_its_generation() {
    let mut f = Fixture::new();
    assert_eq!(f.sync_now(sync("m", 1, &[])).error, ErrorCode::UnknownMemberId);
    let (leader, follower, generation) = f.pair();
    assert_eq!(f.sync_now(sync("m", generation, &[])).error, ErrorCode::UnknownMemberId);
    assert_eq!(f.sync_now(sync(&leader, generation - 1, &[])).error, ErrorCode::IllegalGeneration);
    let other = SyncRequest { protocol: Some("sticky".to_owned()), ..sync(&leader, generation, &[]) };
    assert_eq!(f.sync_now(other).error, ErrorCode::InconsistentGroupProtocol);
    let other = SyncRequest { protocol_type: Some("connect".to_owned()), ..sync(&leader, generation, &[]) };
    assert_eq!(f.sync_now(other).error, ErrorCode::InconsistentGroupProtocol);
    f.join(dynamic(&leader));
    assert_eq!(f.sync_now(sync(&follower, generation, &[])).error, ErrorCode::RebalanceInProgress);
}

#[test]
fn members_that_never_sync_are_thrown_out() {
    let mut f = Fixture::new();
    let first = f.join_now(dynamic(""));
    let second = f.join(dynamic(""));
    f.join(dynamic(&first.member_id));
    let second = f.joined(second).unwrap();
    let generation = second.generation;
    let waiting = f.sync(sync(&second.member_id, generation, &[]));
    for _ in 0..8 {
        assert_eq!(f.heartbeat(&first.member_id, generation), ErrorCode::None);
        f.pass(LONG / 8);
    }
    assert_eq!(f.synced(waiting).unwrap().error, ErrorCode::RebalanceInProgress);
    assert_eq!(f.heartbeat(&first.member_id, generation), ErrorCode::UnknownMemberId);
    assert_eq!(f.join_now(dynamic(&second.member_id)).leader, second.member_id);
}

#[test]
fn a_follower_that_never_syncs_is_thrown_out_of_a_stable_group() {
    let mut f = Fixture::new();
    let first = f.join_now(dynamic(""));
    let second = f.join(dynamic(""));
    f.join(dynamic(&first.member_id));
    let second = f.joined(second).unwrap();
    let generation = second.generation;
    f.sync_now(sync(&first.member_id, generation, &[]));
    assert_eq!(f.state(), GroupState::Stable);
    for _ in 0..8 {
        assert_eq!(f.heartbeat(&first.member_id, generation), ErrorCode::None);
        assert_eq!(f.heartbeat(&second.member_id, generation), ErrorCode::None);
        f.pass(LONG / 8);
    }
    assert_eq!(f.heartbeat(&second.member_id, generation), ErrorCode::UnknownMemberId);
    assert_eq!(f.heartbeat(&first.member_id, generation), ErrorCode::RebalanceInProgress);
}

#[test]
fn a_session_begins_again_when_the_assignment_comes() {
    let mut f = Fixture::new();
    let first = f.join_now(dynamic(""));
    let second = f.join(dynamic(""));
    f.join(dynamic(&first.member_id));
    let second = f.joined(second).unwrap();
    let generation = second.generation;
    let waiting = f.sync(sync(&second.member_id, generation, &[]));
    for _ in 0..3 {
        f.pass(6_000);
        assert_eq!(f.heartbeat(&first.member_id, generation), ErrorCode::None);
    }
    f.sync_now(sync(&first.member_id, generation, &[]));
    assert_eq!(f.synced(waiting).unwrap().error, ErrorCode::None, "it was waiting, not silent");
    f.pass(6_000);
    assert_eq!(f.heartbeat(&first.member_id, generation), ErrorCode::None);
    f.pass(4_000);
    assert_eq!(f.heartbeat(&first.member_id, generation), ErrorCode::RebalanceInProgress, "now it is");
}

#[test]
fn a_group_with_all_assignments_fetched_waits_for_sessions_alone() {
    let mut f = Fixture::new();
    let quick = |member_id: &str| JoinRequest { rebalance_timeout: 1_000, ..dynamic(member_id) };
    let joined = f.join_now(quick(""));
    let at = f.now.since_start;
    assert_eq!(f.groups.next_deadline(), Some(at.after(Millis(1_000))), "the sync is awaited");
    f.sync_now(sync(&joined.member_id, joined.generation, &[]));
    assert_eq!(f.groups.next_deadline(), Some(at.after(Millis(10_000))));
}

#[test]
fn the_last_to_rejoin_is_thrown_out_of_a_group_that_is_full() {
    let mut f = Fixture::with(GroupSettings { max_size: 2, ..GroupSettings::default() });
    let (leader, follower, generation) = f.pair();
    let leading = f.join(dynamic(&leader));
    let third = f.join(dynamic(""));
    assert!(f.joined(third).is_none());
    assert_eq!(f.join_now(dynamic(&follower)).error, ErrorCode::GroupMaxSizeReached);
    assert_eq!(f.heartbeat(&follower, generation), ErrorCode::UnknownMemberId);
    f.pass(LONG);
    assert_eq!(f.joined(leading).unwrap().members.len(), 2);
}

#[test]
fn a_member_that_leaves_while_it_waits_for_its_assignment_is_answered() {
    let mut f = Fixture::new();
    let first = f.join_now(dynamic(""));
    let second = f.join(dynamic(""));
    f.join(dynamic(&first.member_id));
    let second = f.joined(second).unwrap();
    let waiting = f.sync(sync(&second.member_id, second.generation, &[]));
    f.leave(&second.member_id, None);
    assert_eq!(f.synced(waiting).unwrap().error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_rebalance_waits_for_a_member_that_has_only_its_id() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    let third = f.join_now(JoinRequest { member_id_required: true, ..dynamic("") });
    let leading = f.join(dynamic(&leader));
    let following = f.join(dynamic(&follower));
    assert!(f.joined(leading).is_none());
    f.join(JoinRequest { member_id_required: true, ..dynamic(&third.member_id) });
    assert_eq!(f.joined(leading).unwrap().members.len(), 3);
    assert_eq!(f.joined(following).unwrap().generation, generation + 1);
}

#[test]
fn a_rebalance_goes_on_when_an_id_lapses() {
    let mut f = Fixture::new();
    let (leader, follower, _) = f.pair();
    f.join_now(JoinRequest { member_id_required: true, ..dynamic("") });
    let leading = f.join(dynamic(&leader));
    f.join(dynamic(&follower));
    f.pass(10_000);
    assert_eq!(f.joined(leading).unwrap().members.len(), 2);
}

#[test]
fn the_first_rebalance_waits_for_more_members_if_told_so() {
    let delay = Millis(3_000);
    let mut f = Fixture::with(GroupSettings { initial_rebalance_delay: delay, ..GroupSettings::default() });
    let first = f.join(dynamic(""));
    f.pass(2_000);
    let second = f.join(dynamic(""));
    f.pass(1_000);
    assert!(f.joined(first).is_none(), "put off, for a second one came");
    f.pass(3_000);
    assert_eq!(f.joined(first).unwrap().members.len(), 2);
    assert_eq!(f.joined(second).unwrap().generation, 1);
}

#[test]
fn the_first_rebalance_is_put_off_no_longer_than_a_rebalance_may_take() {
    let delay = Millis(3_000);
    let mut f = Fixture::with(GroupSettings { initial_rebalance_delay: delay, ..GroupSettings::default() });
    let impatient = JoinRequest { rebalance_timeout: 7_000, ..dynamic("") };
    let first = f.join(impatient.clone());
    for _ in 0..7 {
        assert!(f.joined(first).is_none());
        f.join(impatient.clone());
        f.pass(1_000);
    }
    assert_eq!(f.joined(first).unwrap().error, ErrorCode::None);
}

#[test]
fn without_rebalance_timeout_the_session_timeout_counts() {
    let mut f = Fixture::new();
    let old = |member_id: &str| JoinRequest { rebalance_timeout: -1, ..dynamic(member_id) };
    let first = f.join_now(old(""));
    let waiting = f.join(old(""));
    f.heartbeat(&first.member_id, first.generation);
    f.pass(5_000);
    f.heartbeat(&first.member_id, first.generation);
    assert!(f.joined(waiting).is_none());
    f.pass(5_000);
    assert_eq!(f.joined(waiting).unwrap().members.len(), 1);
}

#[test]
fn the_next_deadline_is_the_next_thing_that_happens() {
    let mut f = Fixture::new();
    assert_eq!(f.groups.next_deadline(), None);
    f.single();
    let at = f.groups.next_deadline().unwrap();
    f.pass(at.0 - f.now.since_start.0 - 1);
    assert_eq!(f.state(), GroupState::Stable);
    f.pass(1);
    assert_eq!(f.state(), GroupState::Empty);
    assert_eq!(f.groups.next_deadline(), None);
}
