//! Static members (KIP-345).

use super::*;

/// A dynamic leader and a static follower `i` in a stable group: their ids and the generation.
fn with_static_follower(f: &mut Fixture) -> (String, String, i32) {
    let first = f.join_now(dynamic(""));
    let ticket = f.join(fixed("", "i"));
    f.join(dynamic(&first.member_id));
    let second = f.joined(ticket).unwrap();
    assert_eq!(second.leader, first.member_id);
    let assigned = [(first.member_id.as_str(), "L"), (second.member_id.as_str(), "S")];
    f.sync_now(sync(&first.member_id, second.generation, &assigned));
    f.sync_now(sync(&second.member_id, second.generation, &[]));
    (first.member_id, second.member_id, second.generation)
}

fn heartbeat_static(f: &mut Fixture, member_id: &str, generation: i32) -> ErrorCode {
    f.groups.heartbeat(f.now, "g", member_id, Some("i"), generation)
}

#[test]
fn a_static_member_comes_back_without_a_rebalance() {
    let mut f = Fixture::new();
    let (leader, old, generation) = with_static_follower(&mut f);
    let back = f.join_now(fixed("", "i"));
    assert_eq!((back.error, back.generation), (ErrorCode::None, generation));
    assert_eq!(back.leader, leader);
    assert_ne!(back.member_id, old);
    assert_eq!(f.state(), GroupState::Stable);
    let synced = f.sync_now(sync(&back.member_id, generation, &[]));
    assert_eq!(synced.assignment, Bytes::from("S"), "it has the assignment of the one before");
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::None);
}

#[test]
fn who_had_the_instance_id_is_fenced() {
    let mut f = Fixture::new();
    let (_, old, generation) = with_static_follower(&mut f);
    let back = f.join_now(fixed("", "i"));
    assert_eq!(heartbeat_static(&mut f, &old, generation), ErrorCode::FencedInstanceId);
    assert_eq!(f.join_now(fixed(&old, "i")).error, ErrorCode::FencedInstanceId);
    let request = SyncRequest { instance_id: Some("i".to_owned()), ..sync(&old, generation, &[]) };
    assert_eq!(f.sync_now(request).error, ErrorCode::FencedInstanceId);
    assert_eq!(f.commit_as(&old, Some("i"), generation, commit(0, 1)), ErrorCode::FencedInstanceId);
    assert_eq!(f.leave(&old, Some("i")), ErrorCode::FencedInstanceId);
    let producer = Producer::new(1, 0);
    let code = f.txn_commit_as(producer, &old, Some("i"), generation, commit(0, 1));
    assert_eq!(code, ErrorCode::FencedInstanceId);
    // Without its instance id it is merely unknown.
    assert_eq!(f.heartbeat(&old, generation), ErrorCode::UnknownMemberId);
    assert_eq!(heartbeat_static(&mut f, &back.member_id, generation), ErrorCode::None);
}

#[test]
fn a_sync_that_waits_is_fenced_at_once() {
    let mut f = Fixture::new();
    let (leader, old, generation) = with_static_follower(&mut f);
    f.join(dynamic(&leader));
    f.join(fixed(&old, "i"));
    let request = SyncRequest { instance_id: Some("i".to_owned()), ..sync(&old, generation + 1, &[]) };
    let waiting = f.sync(request);
    assert!(f.synced(waiting).is_none());
    f.join(fixed("", "i"));
    assert_eq!(f.synced(waiting).unwrap().error, ErrorCode::FencedInstanceId);
}

#[test]
fn a_join_that_waits_is_fenced_at_once() {
    let mut f = Fixture::new();
    let (leader, old, generation) = with_static_follower(&mut f);
    // The leader asks for a rebalance.
    let leading = f.join(dynamic(&leader));
    assert!(f.joined(leading).is_none());
    // A third member is given its id and does not come back with it, so the rebalance waits.
    f.join_now(JoinRequest { member_id_required: true, ..dynamic("") });
    let waiting = f.join(fixed(&old, "i"));
    assert!(f.joined(waiting).is_none(), "a third member is missing");
    let back = f.join(fixed("", "i"));
    let fenced = f.joined(waiting).unwrap();
    assert_eq!((fenced.error, fenced.member_id), (ErrorCode::FencedInstanceId, old));
    f.pass(10_000);
    assert_eq!(f.joined(back).unwrap().generation, generation + 1);
}

#[test]
fn a_static_leader_that_comes_back_is_not_told_that_it_leads() {
    let mut f = Fixture::new();
    let first = f.join_now(fixed("", "i"));
    let assigned = [(first.member_id.as_str(), "S")];
    f.sync_now(sync(&first.member_id, first.generation, &assigned));
    let back = f.join_now(fixed("", "i"));
    assert_eq!((back.leader.as_str(), back.members.len()), (first.member_id.as_str(), 0));
    assert_eq!(f.describe().leader.as_deref(), Some(back.member_id.as_str()), "but it does");
}

#[test]
fn a_static_leader_that_knows_of_skipping_is_told_to_skip() {
    let mut f = Fixture::new();
    let request = |member_id: &str| JoinRequest { knows_skip_assignment: true, ..fixed(member_id, "i") };
    let first = f.join_now(request(""));
    assert!(!first.skip_assignment);
    f.sync_now(sync(&first.member_id, first.generation, &[(first.member_id.as_str(), "S")]));
    let back = f.join_now(request(""));
    assert!(back.skip_assignment);
    assert_eq!((back.leader.as_str(), back.members.len()), (back.member_id.as_str(), 1));
}

#[test]
fn a_static_member_that_supports_another_protocol_now_starts_a_rebalance() {
    let mut f = Fixture::new();
    let both = |member_id: &str, names: &[&str]| JoinRequest {
        protocols: names.iter().map(|name| protocol(name, Bytes::new())).collect(),
        ..fixed(member_id, "i")
    };
    let first = f.join_now(both("", &["a", "b"]));
    f.sync_now(sync(&first.member_id, first.generation, &[]));
    let back = f.join_now(both("", &["b", "a"]));
    assert_eq!((back.generation, back.protocol.as_deref()), (first.generation + 1, Some("b")));
}

#[test]
fn a_static_member_that_comes_back_before_the_assignment_starts_over() {
    let mut f = Fixture::new();
    let (leader, old, _) = with_static_follower(&mut f);
    let leading = f.join(dynamic(&leader));
    f.join(fixed(&old, "i"));
    let generation = f.joined(leading).unwrap().generation;
    assert_eq!(f.state(), GroupState::CompletingRebalance);
    f.join(fixed("", "i"));
    assert_eq!(f.state(), GroupState::PreparingRebalance);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::RebalanceInProgress);
}

#[test]
fn a_static_member_that_comes_back_has_a_session_of_its_own() {
    let mut f = Fixture::new();
    let first = f.join_now(fixed("", "i"));
    f.sync_now(sync(&first.member_id, first.generation, &[]));
    f.pass(9_000);
    let back = f.join_now(fixed("", "i"));
    f.pass(9_000);
    assert_eq!(heartbeat_static(&mut f, &back.member_id, back.generation), ErrorCode::None);
}

#[test]
fn a_static_leader_that_does_not_rejoin_in_time_leads_no_more() {
    let mut f = Fixture::new();
    let first = f.join_now(fixed("", "i"));
    let waiting = f.join(dynamic(""));
    for _ in 0..8 {
        let code = heartbeat_static(&mut f, &first.member_id, first.generation);
        assert_eq!(code, ErrorCode::RebalanceInProgress);
        f.pass(7_500);
    }
    let joined = f.joined(waiting).unwrap();
    assert_eq!((joined.leader.as_str(), joined.members.len()), (joined.member_id.as_str(), 2));
}

#[test]
fn a_static_member_that_comes_back_has_its_assignment_to_fetch_like_the_one_before() {
    for syncs in [true, false] {
        let mut f = Fixture::new();
        let (leader, old, _) = with_static_follower(&mut f);
        let leading = f.join(dynamic(&leader));
        f.join(fixed(&old, "i"));
        let generation = f.joined(leading).unwrap().generation;
        f.sync_now(sync(&leader, generation, &[(old.as_str(), "S")]));
        let back = f.join_now(fixed("", "i"));
        assert_eq!((back.generation, f.state()), (generation, GroupState::Stable));
        if syncs {
            assert_eq!(f.sync_now(sync(&back.member_id, generation, &[])).assignment, Bytes::from("S"));
        }
        for _ in 0..8 {
            assert_eq!(f.heartbeat(&leader, generation), ErrorCode::None);
            assert_eq!(heartbeat_static(&mut f, &back.member_id, generation), ErrorCode::None);
            f.pass(7_500);
        }
        let code = heartbeat_static(&mut f, &back.member_id, generation);
        assert_eq!(code, if syncs { ErrorCode::None } else { ErrorCode::UnknownMemberId });
    }
}

#[test]
fn a_static_member_that_comes_back_while_it_waits_has_a_member_s_patience() {
    let mut f = Fixture::new();
    let (first, second, generation) = f.pair();
    let lost = f.join(fixed("", "i"));
    let back = f.join(fixed("", "i"));
    assert_eq!(f.joined(lost).unwrap().error, ErrorCode::FencedInstanceId);
    for _ in 0..4 {
        f.pass(7_500);
        assert_eq!(f.heartbeat(&first, generation), ErrorCode::RebalanceInProgress);
        assert_eq!(f.heartbeat(&second, generation), ErrorCode::RebalanceInProgress);
    }
    assert!(f.joined(back).is_none());
    f.join(dynamic(&first));
    f.join(dynamic(&second));
    assert_eq!(f.joined(back).unwrap().error, ErrorCode::None);
}

#[test]
fn a_static_member_that_does_not_rejoin_in_time_keeps_its_place() {
    let mut f = Fixture::new();
    let (leader, old, generation) = with_static_follower(&mut f);
    let leading = f.join(dynamic(&leader));
    for _ in 0..8 {
        assert_eq!(heartbeat_static(&mut f, &old, generation), ErrorCode::RebalanceInProgress);
        f.pass(7_500);
    }
    assert_eq!(f.joined(leading).unwrap().members.len(), 2, "it is a member, though it has not joined");
}

#[test]
fn a_static_member_is_thrown_out_when_its_session_ends() {
    let mut f = Fixture::new();
    let (leader, old, generation) = with_static_follower(&mut f);
    f.pass(6_000);
    f.heartbeat(&leader, generation);
    f.pass(6_000);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::RebalanceInProgress);
    assert_eq!(heartbeat_static(&mut f, &old, generation), ErrorCode::UnknownMemberId);
    // It is a new member then.
    let back = f.join(fixed("", "i"));
    assert!(f.joined(back).is_none());
}

#[test]
fn a_group_of_static_members_alone_waits_for_their_sessions() {
    let mut f = Fixture::new();
    let (leader, _, _) = with_static_follower(&mut f);
    f.leave(&leader, None);
    assert_eq!(f.state(), GroupState::PreparingRebalance);
    f.pass(9_999);
    assert_eq!(f.state(), GroupState::PreparingRebalance);
    f.pass(1);
    assert_eq!(f.state(), GroupState::Empty);
}

#[test]
fn a_static_member_can_be_removed_by_its_instance_id_alone() {
    let mut f = Fixture::new();
    let (leader, _, generation) = with_static_follower(&mut f);
    assert_eq!(f.leave("", Some("nobody")), ErrorCode::UnknownMemberId);
    assert_eq!(f.leave("", None), ErrorCode::UnknownMemberId);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::None);
    assert_eq!(f.leave("", Some("i")), ErrorCode::None);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::RebalanceInProgress);
}

#[test]
fn an_instance_id_is_described() {
    let mut f = Fixture::new();
    let (_, member, _) = with_static_follower(&mut f);
    let described = f.describe();
    let found = described.members.iter().find(|found| found.member_id == member).unwrap();
    assert_eq!(found.instance_id.as_deref(), Some("i"));
    assert_eq!(found.assignment, Bytes::from("S"));
}
