//! Joining a group, agreeing on a protocol, and getting an assignment.

use flechtwerk_conformance::*;
use kafka_protocol::messages::{JoinGroupRequest, SyncGroupRequest};

fn begun() -> (Client, String) {
    (Broker::get().client(), unique("group"))
}

#[test]
fn a_member_without_an_id_is_given_one_first() {
    let (client, group) = begun();
    let mut member = Member::new(client.another(), &group);
    let answer = member.client.call(&member.join_request());
    assert_eq!(code(answer.error_code), Err(Code::MemberIdRequired));
    assert!(!answer.member_id.is_empty());
    member.id = answer.member_id.as_str().to_owned();
    let joined = member.join().expect("a join");
    assert_eq!(joined.member_id.as_str(), member.id);
}

/// Older clients don't know that code.
#[test]
fn a_member_of_an_older_version_joins_at_once() {
    let (mut client, group) = begun();
    let (low, _) = client.versions()[&11];
    if low > 3 {
        return;
    }
    let request = Member::new(client.another(), &group).join_request();
    let answer = client.call_at(3, &request);
    assert_eq!(code(answer.error_code), Ok(()));
    assert_eq!(answer.leader, answer.member_id);
}

#[test]
fn the_first_member_leads_and_learns_of_all_members() {
    let (client, group) = begun();
    let mut member = Member::new(client.another(), &group);
    let answer = member.join().expect("a join");
    assert_eq!((answer.generation_id, answer.leader.as_str()), (1, member.id.as_str()));
    assert_eq!(answer.protocol_name.as_deref(), Some("range"));
    assert_eq!(answer.members.len(), 1);
    assert_eq!(answer.members[0].metadata, "metadata of range".as_bytes());
}

#[test]
fn an_unknown_member_id_is_refused() {
    let (client, group) = begun();
    let mut member = Member::new(client.another(), &group);
    member.id = "nobody".to_owned();
    assert_eq!(member.join().expect_err("an error"), Code::UnknownMemberId);
    let mut known = Member::new(client.another(), &group);
    known.join_alone();
    assert_eq!(member.join().expect_err("an error"), Code::UnknownMemberId);
}

#[test]
fn a_group_without_a_name_is_refused() {
    let (mut client, _) = begun();
    let request = Member::new(client.another(), "").join_request();
    assert_eq!(code(client.call(&request).error_code), Err(Code::InvalidGroupId));
}

#[test]
fn a_session_outside_the_brokers_limits_is_refused() {
    let (mut client, group) = begun();
    for session in [0, -1, 1_800_001] {
        let request = Member::new(client.another(), &group).join_request().with_session_timeout_ms(session);
        assert_eq!(code(client.call(&request).error_code), Err(Code::InvalidSessionTimeout), "{session}");
    }
}

#[test]
fn a_member_without_protocols_is_refused() {
    let (mut client, group) = begun();
    let request = Member::new(client.another(), &group).with_protocols(&[]).join_request();
    assert_eq!(code(client.call(&request).error_code), Err(Code::InconsistentGroupProtocol));
    let request = Member::new(client.another(), &group).join_request().with_protocol_type(text(""));
    assert_eq!(code(client.call(&request).error_code), Err(Code::InconsistentGroupProtocol));
}

/// Two members, of which the second has begun to join; the first hears of it.
fn two(client: &mut Client, group: &str) -> (Member, Member) {
    let mut first = Member::new(client.another(), group);
    first.join_alone();
    let mut second = Member::new(client.another(), group);
    second.start_join();
    wait_for("the first member hears of it", || first.heartbeat() == Err(Code::RebalanceInProgress));
    (first, second)
}

#[test]
fn a_second_member_makes_the_first_join_again_and_the_first_goes_on_leading() {
    let (mut client, group) = begun();
    let (mut first, mut second) = two(&mut client, &group);
    let led = first.join().expect("a join");
    let joined = second.finish_join().expect("a join");
    assert_eq!((led.generation_id, joined.generation_id), (2, 2));
    assert_eq!(joined.leader.as_str(), first.id);
    assert!(first.leads && !second.leads);
    let mut ids: Vec<&str> = led.members.iter().map(|member| member.member_id.as_str()).collect();
    ids.sort_unstable();
    let mut wanted = [first.id.as_str(), second.id.as_str()];
    wanted.sort_unstable();
    assert_eq!(ids, wanted);
    assert!(joined.members.is_empty(), "only the leader learns of the members");
}

#[test]
fn each_member_gets_the_assignment_that_the_leader_made_for_it() {
    let (mut client, group) = begun();
    let (mut first, mut second) = two(&mut client, &group);
    first.join().expect("a join");
    second.finish_join().expect("a join");
    second.start_sync(&[]);
    assert!(second.client.is_silent_for(std::time::Duration::from_millis(100)), "it waits for the leader");
    let ids = (first.id.clone(), second.id.clone());
    assert_eq!(
        first.sync(&[(&ids.0, "for the first"), (&ids.1, "for the second")]),
        Ok("for the first".to_owned())
    );
    assert_eq!(second.finish_sync(), Ok("for the second".to_owned()));
    assert_eq!((first.heartbeat(), second.heartbeat()), (Ok(()), Ok(())));
    assert_eq!(client.group_state(&group), "Stable");
}

#[test]
fn a_member_that_the_leader_forgot_gets_an_empty_assignment() {
    let (mut client, group) = begun();
    let (mut first, mut second) = two(&mut client, &group);
    first.join().expect("a join");
    second.finish_join().expect("a join");
    let id = first.id.clone();
    assert_eq!(first.sync(&[(&id, "all")]), Ok("all".to_owned()));
    assert_eq!(second.sync(&[]), Ok(String::new()));
}

#[test]
fn a_sync_in_a_stable_group_answers_the_assignment_again() {
    let (client, group) = begun();
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    assert_eq!(member.sync(&[]), Ok("all".to_owned()));
}

#[test]
fn a_sync_of_another_generation_or_member_is_refused() {
    let (client, group) = begun();
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    member.generation += 1;
    assert_eq!(member.sync(&[]), Err(Code::IllegalGeneration));
    member.generation -= 1;
    member.id = "nobody".to_owned();
    assert_eq!(member.sync(&[]), Err(Code::UnknownMemberId));
    let mut nobody = Member::new(client.another(), &unique("no-group"));
    nobody.id = "nobody".to_owned();
    assert_eq!(nobody.sync(&[]), Err(Code::UnknownMemberId));
}

#[test]
fn a_sync_while_members_join_is_refused() {
    let (mut client, group) = begun();
    let (mut first, _second) = two(&mut client, &group);
    assert_eq!(first.sync(&[]), Err(Code::RebalanceInProgress));
}

#[test]
fn a_waiting_sync_is_sent_back_when_another_member_joins() {
    let (mut client, group) = begun();
    let (mut first, mut second) = two(&mut client, &group);
    first.join().expect("a join");
    second.finish_join().expect("a join");
    second.start_sync(&[]);
    let mut third = Member::new(client.another(), &group);
    third.start_join();
    assert_eq!(second.finish_sync(), Err(Code::RebalanceInProgress));
    first.start_join();
    second.start_join();
    for member in [&mut first, &mut second, &mut third] {
        assert_eq!(member.finish_join().expect("a join").generation_id, 3);
    }
}

#[test]
fn a_follower_that_joins_again_as_it_was_changes_nothing() {
    let (mut client, group) = begun();
    let (mut first, mut second) = two(&mut client, &group);
    first.join().expect("a join");
    second.finish_join().expect("a join");
    let ids = (first.id.clone(), second.id.clone());
    first.sync(&[(&ids.0, "a"), (&ids.1, "b")]).expect("a sync");
    second.sync(&[]).expect("a sync");
    assert_eq!(second.join().expect("a join").generation_id, 2);
    assert_eq!(first.heartbeat(), Ok(()));
}

#[test]
fn a_leader_that_joins_again_starts_a_rebalance() {
    let (mut client, group) = begun();
    let (mut first, mut second) = two(&mut client, &group);
    first.join().expect("a join");
    second.finish_join().expect("a join");
    let ids = (first.id.clone(), second.id.clone());
    first.sync(&[(&ids.0, "a"), (&ids.1, "b")]).expect("a sync");
    second.sync(&[]).expect("a sync");
    first.start_join();
    wait_for("the follower hears of it", || second.heartbeat() == Err(Code::RebalanceInProgress));
    second.join().expect("a join");
    assert_eq!(first.finish_join().expect("a join").generation_id, 3);
}

#[test]
fn a_member_whose_protocols_changed_starts_a_rebalance() {
    let (mut client, group) = begun();
    let (mut first, mut second) = two(&mut client, &group);
    first.join().expect("a join");
    second.finish_join().expect("a join");
    let ids = (first.id.clone(), second.id.clone());
    first.sync(&[(&ids.0, "a"), (&ids.1, "b")]).expect("a sync");
    second.sync(&[]).expect("a sync");
    second.protocols = vec!["other".to_owned(), "range".to_owned()];
    second.start_join();
    wait_for("the leader hears of it", || first.heartbeat() == Err(Code::RebalanceInProgress));
    first.join().expect("a join");
    assert_eq!(second.finish_join().expect("a join").generation_id, 3);
}

#[test]
fn the_protocol_is_one_that_all_members_have() {
    let (mut client, group) = begun();
    let mut first =
        Member::new(client.another(), &group).with_protocols(&["x", "cooperative-sticky", "range"]);
    assert_eq!(first.join().expect("a join").protocol_name.as_deref(), Some("x"));
    let id = first.id.clone();
    first.sync(&[(&id, "all")]).expect("a sync");
    let mut second = Member::new(client.another(), &group).with_protocols(&["cooperative-sticky", "y"]);
    second.start_join();
    wait_for("the rebalance begins", || first.heartbeat() == Err(Code::RebalanceInProgress));
    let led = first.join().expect("a join");
    let joined = second.finish_join().expect("a join");
    for name in [led.protocol_name, joined.protocol_name] {
        assert_eq!(name.as_deref(), Some("cooperative-sticky"));
    }
    assert_eq!(led.members[0].metadata, "metadata of cooperative-sticky".as_bytes());
    assert_eq!(client.describe_group(&group).group_state.as_str(), "CompletingRebalance");
}

#[test]
fn the_protocol_is_the_one_that_most_members_prefer() {
    let (client, group) = begun();
    let mut first = Member::new(client.another(), &group).with_protocols(&["a", "b"]);
    first.join_alone();
    let mut others: Vec<Member> =
        (0..2).map(|_| Member::new(client.another(), &group).with_protocols(&["b", "a"])).collect();
    others.iter_mut().for_each(Member::start_join);
    wait_for("both others wait", || {
        let members = client.another().describe_group(&group).members;
        members.len() == 3
    });
    let led = first.join().expect("a join");
    assert_eq!(led.protocol_name.as_deref(), Some("b"));
    for other in &mut others {
        other.finish_join().expect("a join");
    }
}

#[test]
fn a_member_with_no_protocol_in_common_is_refused() {
    let (client, group) = begun();
    let mut first = Member::new(client.another(), &group);
    first.join_alone();
    for request in [
        Member::new(client.another(), &group).with_protocols(&["roundrobin"]).join_request(),
        Member::new(client.another(), &group).join_request().with_protocol_type(text("connect")),
    ] {
        assert_eq!(code(client.another().call(&request).error_code), Err(Code::InconsistentGroupProtocol));
    }
    assert_eq!(first.heartbeat(), Ok(()), "the group goes on");
}

/// An assignor of the cooperative kind rejoins at once with what it keeps: a second rebalance follows the first.
#[test]
fn two_rebalances_in_a_row_as_cooperative_members_do_them() {
    let (mut client, group) = begun();
    let (mut first, mut second) = two(&mut client, &group);
    first.join().expect("a join");
    second.finish_join().expect("a join");
    let ids = (first.id.clone(), second.id.clone());
    // What is taken from the first is not given to the second yet.
    first.sync(&[(&ids.0, "0"), (&ids.1, "")]).expect("a sync");
    assert_eq!(second.sync(&[]), Ok(String::new()));
    first.start_join();
    wait_for("the second hears of it", || second.heartbeat() == Err(Code::RebalanceInProgress));
    second.start_join();
    assert_eq!(first.finish_join().expect("a join").generation_id, 3);
    assert_eq!(second.finish_join().expect("a join").generation_id, 3);
    first.sync(&[(&ids.0, "0"), (&ids.1, "1")]).expect("a sync");
    assert_eq!(second.sync(&[]), Ok("1".to_owned()));
}

#[test]
fn a_join_and_a_sync_wait_without_holding_up_other_connections() {
    let (mut client, group) = begun();
    let (mut first, mut second) = two(&mut client, &group);
    assert_eq!(first.heartbeat(), Err(Code::RebalanceInProgress));
    client.topic(1);
    first.join().expect("a join");
    second.client.receive::<JoinGroupRequest>();
    second.generation = first.generation;
    second.start_sync(&[]);
    client.topic(1);
    let id = first.id.clone();
    first.sync(&[(&id, "all")]).expect("a sync");
    second.client.receive::<SyncGroupRequest>();
}
