//! Who becomes a member, and what members are refused.

use super::*;

#[test]
fn the_first_member_leads_and_is_told_of_all_members() {
    let mut f = Fixture::new();
    let joined = f.join_now(dynamic(""));
    assert_eq!(joined.error, ErrorCode::None);
    assert_eq!(joined.generation, 1);
    assert_eq!(joined.leader, joined.member_id);
    assert_eq!(joined.protocol.as_deref(), Some("range"));
    assert_eq!(joined.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(joined.members.len(), 1);
    assert_eq!(joined.members[0].metadata, subscription(&["t"]));
    assert_eq!(f.state(), GroupState::CompletingRebalance);
}

#[test]
fn a_new_dynamic_member_is_given_its_id_first_where_the_version_says_so() {
    let mut f = Fixture::new();
    let request = JoinRequest { member_id_required: true, ..dynamic("") };
    let refused = f.join_now(request.clone());
    assert_eq!(refused.error, ErrorCode::MemberIdRequired);
    assert!(refused.member_id.starts_with("client-"));
    assert_eq!(f.state(), GroupState::Empty);
    let joined = f.join_now(JoinRequest { member_id: refused.member_id.clone(), ..request });
    assert_eq!(joined.error, ErrorCode::None);
    assert_eq!(joined.member_id, refused.member_id);
}

#[test]
fn a_static_member_is_never_asked_to_join_twice() {
    let mut f = Fixture::new();
    let joined = f.join_now(JoinRequest { member_id_required: true, ..fixed("", "i") });
    assert_eq!(joined.error, ErrorCode::None);
    assert!(joined.member_id.starts_with("i-"));
}

#[test]
fn an_id_that_was_given_out_lapses_with_the_session() {
    let mut f = Fixture::new();
    let request = JoinRequest { member_id_required: true, ..dynamic("") };
    let refused = f.join_now(request.clone());
    f.pass(u64::try_from(SESSION).unwrap());
    let late = f.join_now(JoinRequest { member_id: refused.member_id, ..request });
    assert_eq!(late.error, ErrorCode::UnknownMemberId);
}

#[test]
fn an_id_that_nobody_gave_out_is_unknown() {
    let mut f = Fixture::new();
    assert_eq!(f.join_now(dynamic("stranger")).error, ErrorCode::UnknownMemberId);
    assert!(f.groups.describe("g").is_none(), "a stranger makes no group");
    f.single();
    let refused = f.join_now(dynamic("stranger"));
    assert_eq!((refused.error, refused.member_id.as_str()), (ErrorCode::UnknownMemberId, "stranger"));
}

#[test]
fn an_empty_group_id_is_invalid() {
    let mut f = Fixture::new();
    let refused = f.join_now(JoinRequest { group: String::new(), ..dynamic("") });
    assert_eq!(refused.error, ErrorCode::InvalidGroupId);
    let refused = f.sync_now(SyncRequest { group: String::new(), ..sync("m", 1, &[]) });
    assert_eq!(refused.error, ErrorCode::InvalidGroupId);
    assert_eq!(f.groups.heartbeat(f.now, "", "m", None, 1), ErrorCode::InvalidGroupId);
    let mut out = Effects::new();
    assert_eq!(f.groups.leave(f.now, "", &[], &mut out), Err(ErrorCode::InvalidGroupId));
}

#[test]
fn session_timeouts_outside_the_limits_are_invalid() {
    let mut f = Fixture::new();
    for session_timeout in [i32::MIN, -1, 0, 5_999, 1_800_001, i32::MAX] {
        let refused = f.join_now(JoinRequest { session_timeout, ..dynamic("") });
        assert_eq!(refused.error, ErrorCode::InvalidSessionTimeout, "{session_timeout}");
    }
    for (session_timeout, group) in [(6_000, "a"), (1_800_000, "b")] {
        let joined = f.join_now(JoinRequest { session_timeout, group: group.to_owned(), ..dynamic("") });
        assert_eq!(joined.error, ErrorCode::None, "{session_timeout}");
    }
}

#[test]
fn a_member_without_protocols_or_of_another_type_is_inconsistent() {
    let mut f = Fixture::new();
    let none = JoinRequest { protocols: Vec::new(), ..dynamic("") };
    assert_eq!(f.join_now(none).error, ErrorCode::InconsistentGroupProtocol);
    let untyped = JoinRequest { protocol_type: String::new(), ..dynamic("") };
    assert_eq!(f.join_now(untyped).error, ErrorCode::InconsistentGroupProtocol);
    f.single();
    let other = JoinRequest { protocol_type: "connect".to_owned(), ..dynamic("") };
    assert_eq!(f.join_now(other).error, ErrorCode::InconsistentGroupProtocol);
    let nothing_in_common = JoinRequest { protocols: vec![protocol("sticky", Bytes::new())], ..dynamic("") };
    assert_eq!(f.join_now(nothing_in_common).error, ErrorCode::InconsistentGroupProtocol);
    assert_eq!(f.state(), GroupState::Stable);
}

#[test]
fn a_group_that_was_emptied_takes_another_protocol_type() {
    let mut f = Fixture::new();
    let (member, _) = f.single();
    f.leave(&member, None);
    let other = JoinRequest { protocol_type: "connect".to_owned(), ..dynamic("") };
    assert_eq!(f.join_now(other).protocol_type.as_deref(), Some("connect"));
}

#[test]
fn the_protocol_is_common_to_all_and_has_the_most_votes() {
    let mut f = Fixture::new();
    let supports = |names: &[&str]| names.iter().map(|name| protocol(name, Bytes::new())).collect::<Vec<_>>();
    let first = f.join_now(JoinRequest { protocols: supports(&["only-mine", "a", "b"]), ..dynamic("") });
    assert_eq!(first.protocol.as_deref(), Some("only-mine"));
    let second = f.join(JoinRequest { protocols: supports(&["b", "a"]), ..dynamic("") });
    let third = f.join(JoinRequest { protocols: supports(&["b", "a", "c"]), ..dynamic("") });
    f.join(JoinRequest { protocols: supports(&["only-mine", "a", "b"]), ..dynamic(&first.member_id) });
    for ticket in [second, third] {
        assert_eq!(f.joined(ticket).unwrap().protocol.as_deref(), Some("b"));
    }
}

#[test]
fn a_group_is_no_larger_than_it_may_be() {
    let mut f = Fixture::with(GroupSettings { max_size: 2, ..GroupSettings::default() });
    let (leader, follower, _) = f.pair();
    let refused = f.join_now(dynamic(""));
    assert_eq!((refused.error, refused.member_id.as_str()), (ErrorCode::GroupMaxSizeReached, ""));
    // Those that are members may join again.
    let leading = f.join(dynamic(&leader));
    let following = f.join(dynamic(&follower));
    assert_eq!(f.joined(leading).unwrap().error, ErrorCode::None);
    assert_eq!(f.joined(following).unwrap().error, ErrorCode::None);
}

#[test]
fn heartbeats_are_for_members_of_the_current_generation() {
    let mut f = Fixture::new();
    assert_eq!(f.heartbeat("m", 1), ErrorCode::UnknownMemberId);
    let (leader, follower, generation) = f.pair();
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::None);
    assert_eq!(f.heartbeat(&leader, generation - 1), ErrorCode::IllegalGeneration);
    assert_eq!(f.heartbeat(&leader, generation + 1), ErrorCode::IllegalGeneration);
    assert_eq!(f.heartbeat("m", generation), ErrorCode::UnknownMemberId);
    f.join(dynamic(&leader));
    assert_eq!(f.heartbeat(&follower, generation), ErrorCode::RebalanceInProgress);
    f.leave(&leader, None);
    f.leave(&follower, None);
    assert_eq!(f.state(), GroupState::Empty);
    assert_eq!(f.heartbeat(&leader, generation), ErrorCode::UnknownMemberId);
}

#[test]
fn a_member_lives_as_long_as_its_heartbeats_come() {
    let mut f = Fixture::new();
    let (member, generation) = f.single();
    for _ in 0..5 {
        f.pass(9_999);
        assert_eq!(f.heartbeat(&member, generation), ErrorCode::None);
    }
    f.pass(9_999);
    assert_eq!(f.state(), GroupState::Stable);
    f.pass(1);
    assert_eq!(f.state(), GroupState::Empty);
    assert_eq!(f.describe().generation, generation + 1);
}

#[test]
fn a_member_that_leaves_is_gone_and_the_others_rebalance() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    assert_eq!(f.leave(&leader, None), ErrorCode::None);
    assert_eq!(f.describe().leader, Some(follower.clone()));
    assert_eq!(f.leave(&leader, None), ErrorCode::UnknownMemberId);
    assert_eq!(f.heartbeat(&follower, generation), ErrorCode::RebalanceInProgress);
    let joined = f.join_now(dynamic(&follower));
    assert_eq!((joined.leader.as_str(), joined.generation), (follower.as_str(), generation + 1));
}

#[test]
fn a_member_that_leaves_while_it_joins_is_answered() {
    let mut f = Fixture::new();
    let (leader, follower, _) = f.pair();
    let waiting = f.join(dynamic(&leader));
    assert_eq!(f.leave(&leader, None), ErrorCode::None);
    assert_eq!(f.joined(waiting).unwrap().error, ErrorCode::UnknownMemberId);
    assert_eq!(f.join_now(dynamic(&follower)).error, ErrorCode::None);
}

#[test]
fn an_id_that_was_given_out_can_leave() {
    let mut f = Fixture::new();
    let request = JoinRequest { member_id_required: true, ..dynamic("") };
    let refused = f.join_now(request.clone());
    assert_eq!(f.leave(&refused.member_id, None), ErrorCode::None);
    let late = f.join_now(JoinRequest { member_id: refused.member_id, ..request });
    assert_eq!(late.error, ErrorCode::UnknownMemberId);
}

#[test]
fn leaving_an_unknown_group_is_refused_for_each_member() {
    let mut f = Fixture::new();
    let leaving = LeavingMember { member_id: "m".to_owned(), instance_id: None };
    let mut out = Effects::new();
    let codes = f.groups.leave(f.now, "g", &[leaving.clone(), leaving], &mut out).unwrap();
    assert_eq!(codes, vec![ErrorCode::UnknownMemberId; 2]);
}

#[test]
fn member_ids_are_never_given_twice() {
    let mut ids = MemberIds::new(1);
    let mut other = MemberIds::new(2);
    let given: std::collections::HashSet<String> =
        (0..1_000).flat_map(|_| [ids.next("c"), other.next("c")]).collect();
    assert_eq!(given.len(), 2_000);
    let uuid = given.iter().next().unwrap().strip_prefix("c-").unwrap();
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
}
