//! Groups as tools see them: find, list, describe, delete.

use flechtwerk_conformance::*;
use kafka_protocol::messages::{DescribeGroupsRequest, FindCoordinatorRequest, ListGroupsRequest};

#[test]
fn the_coordinator_of_a_group_and_of_a_transaction_is_a_broker() {
    let broker = Broker::get();
    let mut client = broker.client();
    for kind in [0, 1] {
        let request = FindCoordinatorRequest::default().with_key(text("some-name")).with_key_type(kind);
        let answer = client.call(&request);
        assert_eq!(answer.error_code, 0);
        assert_eq!((answer.host.as_str(), answer.port), ("127.0.0.1", i32::from(broker.address().port())));
    }
}

#[test]
fn an_unknown_kind_of_coordinator_is_refused() {
    let request = FindCoordinatorRequest::default().with_key(text("some-name")).with_key_type(9);
    assert_eq!(code(Broker::get().client().call(&request).error_code), Err(Code::InvalidRequest));
}

#[test]
fn a_stable_group_is_described_with_its_members() {
    let mut client = Broker::get().client();
    let group = unique("group");
    let mut member = Member::new(client.another(), &group).fixed("one");
    member.join_alone();
    let described = client.describe_group(&group);
    assert_eq!(described.error_code, 0);
    assert_eq!(described.group_state.as_str(), "Stable");
    assert_eq!((described.protocol_type.as_str(), described.protocol_data.as_str()), ("consumer", "range"));
    assert_eq!(described.members.len(), 1);
    let one = &described.members[0];
    assert_eq!((one.member_id.as_str(), one.client_id.as_str()), (member.id.as_str(), "conformance"));
    assert_eq!(one.group_instance_id.as_deref(), Some("one"));
    assert_eq!(one.member_metadata, "metadata of one".as_bytes());
    assert_eq!(one.member_assignment, "all".as_bytes());
    assert!(one.client_host.as_str().contains("127.0.0.1"));
}

#[test]
fn an_unknown_group_is_described_as_dead() {
    let mut client = Broker::get().client();
    let request = DescribeGroupsRequest::default().with_groups(vec![text(&unique("no-group")).into()]);
    let answer = client.call(&request);
    assert_eq!(answer.groups[0].error_code, 0);
    assert_eq!(answer.groups[0].group_state.as_str(), "Dead");
    assert!(answer.groups[0].members.is_empty());
}

#[test]
fn a_group_with_offsets_alone_is_empty() {
    let mut client = Broker::get().client();
    let (topic, group) = (client.topic(1), unique("group"));
    assert_eq!(client.commit_offset(&group, &topic, 0, 1), Ok(()));
    assert_eq!(client.group_state(&group), "Empty");
}

#[test]
fn groups_are_listed_with_their_type_and_state() {
    let mut client = Broker::get().client();
    let (topic, active, idle) = (client.topic(1), unique("active"), unique("idle"));
    Member::new(client.another(), &active).join_alone();
    assert_eq!(client.commit_offset(&idle, &topic, 0, 1), Ok(()));
    let answer = client.call(&ListGroupsRequest::default());
    assert_eq!(answer.error_code, 0);
    let find =
        |name: &str| answer.groups.iter().find(|group| group.group_id.as_str() == name).expect("the group");
    assert_eq!(find(&active).protocol_type.as_str(), "consumer");
    assert_eq!(find(&idle).protocol_type.as_str(), "");
    if client.version::<ListGroupsRequest>() >= 4 {
        assert_eq!(
            (find(&active).group_state.as_str(), find(&idle).group_state.as_str()),
            ("Stable", "Empty")
        );
    }
}

#[test]
fn groups_are_listed_by_state() {
    let mut client = Broker::get().client();
    if client.version::<ListGroupsRequest>() < 4 {
        return;
    }
    let (topic, active, idle) = (client.topic(1), unique("active"), unique("idle"));
    Member::new(client.another(), &active).join_alone();
    assert_eq!(client.commit_offset(&idle, &topic, 0, 1), Ok(()));
    let answer = client.call(&ListGroupsRequest::default().with_states_filter(vec![text("Stable")]));
    let there = |name: &str| answer.groups.iter().any(|group| group.group_id.as_str() == name);
    assert!(there(&active) && !there(&idle));
}

#[test]
fn a_group_with_members_can_not_be_deleted() {
    let client = Broker::get().client();
    let group = unique("group");
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    assert_eq!(client.another().delete_group(&group), Err(Code::NonEmptyGroup));
    assert_eq!(member.heartbeat(), Ok(()));
}

#[test]
fn an_unknown_group_can_not_be_deleted() {
    assert_eq!(Broker::get().client().delete_group(&unique("no-group")), Err(Code::GroupIdNotFound));
}

#[test]
fn a_deleted_group_has_no_offsets() {
    let mut client = Broker::get().client();
    let (topic, group) = (client.topic(1), unique("group"));
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    assert_eq!(member.commit(&topic, 0, 5), Ok(()));
    assert_eq!(member.leave(), Ok(()));
    assert_eq!(client.committed(&group, &topic, 0), 5, "an empty group keeps them");
    assert_eq!(client.delete_group(&group), Ok(()));
    assert_eq!(client.committed(&group, &topic, 0), -1);
    assert_eq!(client.group_state(&group), "Dead");
}
