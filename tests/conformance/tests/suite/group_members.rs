//! Members that stay, go, or fall silent.

use flechtwerk_conformance::*;
use std::time::{Duration, Instant};

fn alone() -> (Client, String, Member) {
    let client = Broker::get().client();
    let group = unique("group");
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    (client, group, member)
}

#[test]
fn a_heartbeat_of_another_generation_or_member_is_refused() {
    let (_, _, mut member) = alone();
    assert_eq!(member.heartbeat(), Ok(()));
    member.generation += 1;
    assert_eq!(member.heartbeat(), Err(Code::IllegalGeneration));
    member.generation -= 1;
    member.id = "nobody".to_owned();
    assert_eq!(member.heartbeat(), Err(Code::UnknownMemberId));
}

#[test]
fn a_heartbeat_for_an_unknown_group_is_refused() {
    let client = Broker::get().client();
    let mut member = Member::new(client.another(), &unique("no-group"));
    (member.id, member.generation) = ("nobody".to_owned(), 1);
    assert_eq!(member.heartbeat(), Err(Code::UnknownMemberId));
}

#[test]
fn a_heartbeat_between_join_and_assignment_is_fine() {
    let client = Broker::get().client();
    let mut member = Member::new(client.another(), &unique("group"));
    member.join().expect("a join");
    assert_eq!(member.heartbeat(), Ok(()));
}

#[test]
fn a_member_that_leaves_is_unknown_and_the_group_is_empty() {
    let (mut client, group, mut member) = alone();
    assert_eq!(member.leave(), Ok(()));
    assert_eq!(member.heartbeat(), Err(Code::UnknownMemberId));
    assert_eq!(client.group_state(&group), "Empty");
    assert_eq!(member.leave(), Err(Code::UnknownMemberId));
}

#[test]
fn a_group_that_was_empty_goes_on_with_the_next_generation() {
    let (client, group, mut member) = alone();
    assert_eq!(member.leave(), Ok(()));
    let mut next = Member::new(client.another(), &group);
    // The end of the last member was a generation as well.
    assert_eq!(next.join().expect("a join").generation_id, 3);
}

#[test]
fn those_who_stay_rebalance_when_one_leaves() {
    let (client, group, mut first) = alone();
    let mut second = Member::new(client.another(), &group);
    second.start_join();
    wait_for("the rebalance begins", || first.heartbeat() == Err(Code::RebalanceInProgress));
    first.join().expect("a join");
    second.finish_join().expect("a join");
    let ids = (first.id.clone(), second.id.clone());
    first.sync(&[(&ids.0, "a"), (&ids.1, "b")]).expect("a sync");
    second.sync(&[]).expect("a sync");

    assert_eq!(first.leave(), Ok(()));
    assert_eq!(second.heartbeat(), Err(Code::RebalanceInProgress));
    let joined = second.join().expect("a join");
    assert_eq!((joined.generation_id, joined.leader.as_str()), (3, second.id.as_str()));
    assert_eq!(joined.members.len(), 1);
}

#[test]
fn a_leave_ends_the_wait_of_those_who_join() {
    let (client, group, mut first) = alone();
    let mut second = Member::new(client.another(), &group);
    second.start_join();
    wait_for("the rebalance begins", || first.heartbeat() == Err(Code::RebalanceInProgress));
    assert_eq!(first.leave(), Ok(()));
    let joined = second.finish_join().expect("a join");
    assert_eq!((joined.generation_id, joined.members.len()), (2, 1));
}

#[test]
fn an_unknown_member_can_not_leave() {
    let (client, group, mut member) = alone();
    let mut nobody = Member::new(client.another(), &group);
    nobody.id = "nobody".to_owned();
    assert_eq!(nobody.leave(), Err(Code::UnknownMemberId));
    assert_eq!(member.heartbeat(), Ok(()));
}

#[test]
fn a_silent_member_is_expelled_after_its_session() {
    let mut client = Broker::get().client();
    let group = unique("group");
    let mut member = Member::new(client.another(), &group).short_session();
    member.join_alone();
    wait_for("the member is expelled", || client.group_state(&group) == "Empty");
    assert_eq!(member.heartbeat(), Err(Code::UnknownMemberId));
}

#[test]
fn heartbeats_keep_a_member_longer_than_its_session() {
    let client = Broker::get().client();
    let mut member = Member::new(client.another(), &unique("group"));
    member.session_ms = 2_000;
    member.join_alone();
    let until = Instant::now() + Duration::from_millis(3_000);
    while Instant::now() < until {
        assert_eq!(member.heartbeat(), Ok(()));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn those_who_stay_rebalance_when_one_falls_silent() {
    let client = Broker::get().client();
    let group = unique("group");
    let mut silent = Member::new(client.another(), &group).short_session();
    silent.join_alone();
    let mut other = Member::new(client.another(), &group);
    other.start_join();
    // The silent one neither joins again nor sends a heartbeat.
    let joined = other.finish_join().expect("a join");
    assert_eq!(joined.members.len(), 1);
    assert_eq!(joined.leader.as_str(), other.id);
}

#[test]
fn a_rebalance_leaves_behind_those_who_do_not_join_in_time() {
    let client = Broker::get().client();
    let group = unique("group");
    let mut slow = Member::new(client.another(), &group);
    slow.rebalance_ms = 1_500;
    slow.join_alone();
    let mut other = Member::new(client.another(), &group);
    other.rebalance_ms = 1_500;
    other.start_join();
    // It is alive, but does not join: the rebalance time-out counts, not the session.
    let joined = other.finish_join().expect("a join");
    assert_eq!((joined.generation_id, joined.members.len()), (2, 1));
    assert_eq!(slow.heartbeat(), Err(Code::UnknownMemberId));
}

#[test]
fn a_member_without_an_assignment_in_time_is_expelled() {
    let mut client = Broker::get().client();
    let group = unique("group");
    let mut first = Member::new(client.another(), &group);
    first.rebalance_ms = 1_500;
    first.join().expect("a join");
    // It never asks for its assignment.
    wait_for("the member is expelled", || client.group_state(&group) == "Empty");
}

/// Its id was given, but it never came back with it.
#[test]
fn a_member_that_never_uses_its_id_does_not_hold_up_the_others() {
    let client = Broker::get().client();
    let group = unique("group");
    let pending = Member::new(client.another(), &group).short_session();
    let answer = client.another().call(&pending.join_request());
    assert_eq!(code(answer.error_code), Err(Code::MemberIdRequired));
    let mut member = Member::new(client.another(), &group);
    let joined = member.join().expect("a join");
    assert_eq!(joined.members.len(), 1);
}
