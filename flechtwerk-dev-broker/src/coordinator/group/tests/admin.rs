//! What administrators ask of groups: lists, descriptions, deletions; and what expires.

use super::*;

fn delete_offsets(f: &mut Fixture, topic: &str) -> Result<ErrorCode, ErrorCode> {
    let mut out = Effects::new();
    let codes = f.groups.delete_offsets(f.now, "g", &[TopicPartition::new(topic, 0)], &mut out);
    f.take(out);
    codes.map(|codes| codes[0])
}

fn delete_group(f: &mut Fixture) -> ErrorCode {
    let mut out = Effects::new();
    let code = f.groups.delete_group("g", &mut out);
    f.take(out);
    code
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let mut f = Fixture::new();
    f.single();
    let request = CommitRequest {
        group: "a".to_owned(),
        generation: -1,
        member_id: String::new(),
        instance_id: None,
        offsets: vec![commit(0, 3)],
    };
    let mut out = Effects::new();
    f.groups.commit_offsets(f.now, request, &mut out);
    let names = |states: &[&str], types: &[&str]| -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        f.groups.list(&owned(states), &owned(types)).into_iter().map(|listed| listed.group).collect()
    };
    assert_eq!(names(&[], &[]), ["a", "g"]);
    assert_eq!(names(&["stable"], &[]), ["g"]);
    assert_eq!(names(&["Empty", "Dead"], &["Classic"]), ["a"]);
    assert!(names(&[], &["consumer"]).is_empty());
    let listed = f.groups.list(&[], &[]);
    assert_eq!(listed[0].protocol_type, "");
    assert_eq!(listed[1].protocol_type, "consumer");
}

#[test]
fn a_stable_group_is_described_with_metadata_and_assignments() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    let described = f.describe();
    assert_eq!(described.generation, generation);
    assert_eq!((described.protocol_type.as_str(), described.protocol.as_str()), ("consumer", "range"));
    assert_eq!(described.members.len(), 2);
    for member in described.members {
        assert_eq!(member.metadata, subscription(&["t"]));
        let assignment = if member.member_id == leader { "L" } else { "F" };
        assert_eq!(member.assignment, Bytes::from(assignment));
        assert_eq!((member.client_id.as_str(), member.client_host.as_str()), ("client", "127.0.0.1"));
    }
    f.leave(&follower, None);
    let described = f.describe();
    assert_eq!((described.state.name(), described.protocol.as_str()), ("PreparingRebalance", ""));
    assert_eq!(described.members[0].metadata, Bytes::new());
    assert_eq!(
        described.members[0].assignment,
        Bytes::from("L"),
        "it has its assignment until there is another"
    );
}

#[test]
fn a_rebalance_that_starts_over_has_no_assignments() {
    let mut f = Fixture::new();
    let (leader, follower, _) = f.pair();
    f.join(dynamic(&leader));
    f.join(dynamic(&follower));
    assert_eq!(f.state(), GroupState::CompletingRebalance);
    assert!(f.describe().members.iter().all(|member| !member.assignment.is_empty()));
    f.join(dynamic(""));
    assert_eq!(f.state(), GroupState::PreparingRebalance);
    assert!(f.describe().members.iter().all(|member| member.assignment.is_empty()));
}

#[test]
fn a_group_that_is_not_there_is_dead() {
    let f = Fixture::new();
    assert!(f.groups.describe("g").is_none());
    assert_eq!(DescribedGroup::dead("g").state.name(), "Dead");
}

#[test]
fn an_empty_group_is_deleted_with_its_offsets() {
    let mut f = Fixture::new();
    assert_eq!(delete_group(&mut f), ErrorCode::GroupIdNotFound);
    let (member, generation) = f.single();
    f.commit(&member, generation, 1);
    assert_eq!(delete_group(&mut f), ErrorCode::NonEmptyGroup);
    f.leave(&member, None);
    f.txn_commit(Producer::new(1, 0), commit(1, 1));
    assert_eq!(delete_group(&mut f), ErrorCode::None);
    assert!(f.groups.describe("g").is_none());
    assert_eq!(f.offset(0, false), (-1, ErrorCode::None));
    f.complete(Producer::new(1, 0), true);
    assert_eq!(f.offset(1, false), (-1, ErrorCode::None), "pending offsets went with the group");
}

#[test]
fn offsets_of_topics_that_are_not_consumed_can_be_deleted() {
    let mut f = Fixture::new();
    assert_eq!(delete_offsets(&mut f, "t"), Err(ErrorCode::GroupIdNotFound));
    let (member, generation) = f.single();
    f.commit(&member, generation, 1);
    let of_u = OffsetCommit { partition: TopicPartition::new("u", 0), ..commit(0, 2) };
    f.commit_as(&member, None, generation, of_u);
    assert_eq!(delete_offsets(&mut f, "t"), Ok(ErrorCode::GroupSubscribedToTopic));
    assert_eq!(delete_offsets(&mut f, "u"), Ok(ErrorCode::None));
    assert_eq!(f.groups.fetch_offsets("g", None, false).len(), 1);
    f.leave(&member, None);
    assert_eq!(delete_offsets(&mut f, "t"), Ok(ErrorCode::None));
    assert_eq!(delete_offsets(&mut f, "t"), Ok(ErrorCode::None), "there is nothing left to delete");
    assert!(f.groups.fetch_offsets("g", None, false).is_empty());
}

#[test]
fn offsets_are_not_deleted_where_it_is_not_known_what_is_consumed() {
    let mut f = Fixture::new();
    let unreadable = JoinRequest { protocols: vec![protocol("range", Bytes::from("?"))], ..dynamic("") };
    f.join_now(unreadable);
    assert_eq!(delete_offsets(&mut f, "u"), Ok(ErrorCode::GroupSubscribedToTopic));
}

#[test]
fn a_group_of_another_type_must_be_empty_for_it() {
    let mut f = Fixture::new();
    f.join_now(JoinRequest { protocol_type: "connect".to_owned(), ..dynamic("") });
    assert_eq!(delete_offsets(&mut f, "u"), Err(ErrorCode::NonEmptyGroup));
}

#[test]
fn a_deleted_topic_takes_its_offsets_along() {
    let mut f = Fixture::new();
    f.commit("", -1, 1);
    f.commit_as("", None, -1, OffsetCommit { partition: TopicPartition::new("u", 0), ..commit(0, 2) });
    f.txn_commit(Producer::new(1, 0), commit(1, 1));
    let mut out = Effects::new();
    f.groups.drop_topic("t", &mut out);
    f.take(out);
    f.complete(Producer::new(1, 0), true);
    let left = f.groups.fetch_offsets("g", None, false);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].partition.topic, "u");
}

#[test]
fn offsets_outlive_their_group_for_a_while_if_told_so() {
    let retention = Millis(100_000);
    let mut f =
        Fixture::with(GroupSettings { offsets_retention: Some(retention), ..GroupSettings::default() });
    let (member, generation) = f.single();
    f.commit(&member, generation, 1);
    for _ in 0..30 {
        f.pass(5_000);
        f.heartbeat(&member, generation);
    }
    assert_eq!(f.offset(0, false), (1, ErrorCode::None), "a topic that is consumed keeps its offset");
    f.leave(&member, None);
    f.pass(50_000);
    assert_eq!(f.offset(0, false), (1, ErrorCode::None));
    f.pass(150_000);
    assert_eq!(f.offset(0, false), (-1, ErrorCode::None));
    f.pass(100_000);
    assert!(f.groups.describe("g").is_none(), "nothing is left of the group");
}

#[test]
fn pending_offsets_do_not_expire() {
    let retention = Millis(1_000);
    let mut f =
        Fixture::with(GroupSettings { offsets_retention: Some(retention), ..GroupSettings::default() });
    f.commit("", -1, 1);
    f.txn_commit(Producer::new(1, 0), commit(0, 5));
    f.pass(1_000);
    f.pass(1_000);
    f.pass(1_000);
    assert_eq!(f.offset(0, false), (1, ErrorCode::None));
    f.complete(Producer::new(1, 0), true);
    assert_eq!(f.offset(0, true), (5, ErrorCode::None));
}
