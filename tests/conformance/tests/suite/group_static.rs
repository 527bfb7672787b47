//! Members with a name that outlives their process.

use flechtwerk_conformance::*;

/// Two static members in a stable group; the first leads.
fn stable() -> (Client, String, Member, Member) {
    let client = Broker::get().client();
    let group = unique("group");
    let mut first = Member::new(client.another(), &group).fixed("one");
    first.join_alone();
    let mut second = Member::new(client.another(), &group).fixed("two");
    second.start_join();
    wait_for("the rebalance begins", || first.heartbeat() == Err(Code::RebalanceInProgress));
    first.join().expect("a join");
    second.finish_join().expect("a join");
    let ids = (first.id.clone(), second.id.clone());
    first.sync(&[(&ids.0, "for one"), (&ids.1, "for two")]).expect("a sync");
    second.sync(&[]).expect("a sync");
    (client, group, first, second)
}

#[test]
fn a_static_member_joins_at_once() {
    let client = Broker::get().client();
    let mut member = Member::new(client.another(), &unique("group")).fixed("one");
    let joined = member.join().expect("a join");
    assert_eq!(joined.members[0].group_instance_id.as_deref(), Some("one"));
    assert_eq!(joined.members[0].member_id.as_str(), member.id);
}

#[test]
fn a_static_follower_comes_back_without_a_rebalance() {
    let (client, group, mut first, second) = stable();
    let mut again = Member::new(client.another(), &group).fixed("two");
    let joined = again.join().expect("a join");
    assert_eq!(joined.generation_id, second.generation);
    assert_ne!(again.id, second.id);
    assert_eq!(again.sync(&[]), Ok("for two".to_owned()));
    assert_eq!(first.heartbeat(), Ok(()), "no rebalance");
    assert_eq!(again.heartbeat(), Ok(()));
}

#[test]
fn a_static_leader_comes_back_without_a_rebalance() {
    let (client, group, first, mut second) = stable();
    let mut again = Member::new(client.another(), &group).fixed("one");
    let joined = again.join().expect("a join");
    assert_eq!(joined.generation_id, first.generation);
    assert_eq!(again.sync(&[]), Ok("for one".to_owned()));
    assert_eq!(second.heartbeat(), Ok(()), "no rebalance");
    assert_eq!(again.heartbeat(), Ok(()));
}

#[test]
fn the_process_whose_place_was_taken_is_fenced() {
    let (client, group, _, mut second) = stable();
    let topic = client.another().topic(1);
    Member::new(client.another(), &group).fixed("two").join().expect("a join");
    let fenced = Err(Code::FencedInstanceId);
    assert_eq!(second.heartbeat(), fenced);
    assert_eq!(second.sync(&[]).map(|_| ()), fenced);
    assert_eq!(second.commit(&topic, 0, 1), fenced);
    assert_eq!(second.join().map(|_| ()), fenced);
}

#[test]
fn a_join_that_waits_is_fenced_by_one_with_the_same_name() {
    let client = Broker::get().client();
    let group = unique("group");
    let mut first = Member::new(client.another(), &group);
    first.join_alone();
    let mut old = Member::new(client.another(), &group).fixed("two");
    old.start_join();
    wait_for("the rebalance begins", || first.heartbeat() == Err(Code::RebalanceInProgress));
    let mut new = Member::new(client.another(), &group).fixed("two");
    new.start_join();
    assert_eq!(old.finish_join().expect_err("an error"), Code::FencedInstanceId);
    first.join().expect("a join");
    new.finish_join().expect("a join");
}

#[test]
fn a_static_member_for_whom_the_chosen_protocol_stays_starts_no_rebalance() {
    let (client, group, mut first, second) = stable();
    let mut again = Member::new(client.another(), &group).fixed("two").with_protocols(&["range", "more"]);
    assert_eq!(again.join().expect("a join").generation_id, second.generation);
    assert_eq!(first.heartbeat(), Ok(()));
}

#[test]
fn an_instance_that_the_group_does_not_have_is_unknown() {
    let (_, _, _, mut second) = stable();
    second.instance = Some("three".to_owned());
    assert_eq!(second.heartbeat(), Err(Code::UnknownMemberId));
}

#[test]
fn a_static_member_is_expelled_after_its_session() {
    let mut client = Broker::get().client();
    let group = unique("group");
    let mut member = Member::new(client.another(), &group).fixed("one").short_session();
    member.join_alone();
    wait_for("the member is expelled", || client.group_state(&group) == "Empty");
    assert_eq!(member.heartbeat(), Err(Code::UnknownMemberId));
}

#[test]
fn a_member_id_with_the_instance_of_another_is_fenced() {
    let (_, _, _, mut second) = stable();
    second.instance = Some("one".to_owned());
    assert_eq!(second.heartbeat(), Err(Code::FencedInstanceId));
}
