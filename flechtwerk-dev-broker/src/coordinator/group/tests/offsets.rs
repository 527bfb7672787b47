//! Committed offsets: who may commit, and what a fetch answers.

use super::*;

#[test]
fn a_consumer_without_a_group_commits_to_an_empty_one() {
    let mut f = Fixture::new();
    assert_eq!(f.commit("", -1, 5), ErrorCode::None);
    assert_eq!(f.offset(0, true), (5, ErrorCode::None));
    let described = f.describe();
    assert_eq!((described.state, described.protocol_type.as_str()), (GroupState::Empty, ""));
}

#[test]
fn a_commit_with_a_generation_needs_a_group() {
    let mut f = Fixture::new();
    assert_eq!(f.commit("m", 1, 5), ErrorCode::IllegalGeneration);
    assert!(f.groups.describe("g").is_none());
}

#[test]
fn a_commit_is_for_members_of_the_current_generation() {
    let mut f = Fixture::new();
    let (leader, _, generation) = f.pair();
    assert_eq!(f.commit(&leader, generation, 1), ErrorCode::None);
    assert_eq!(f.commit(&leader, generation - 1, 2), ErrorCode::IllegalGeneration);
    assert_eq!(f.commit(&leader, generation + 1, 2), ErrorCode::IllegalGeneration);
    assert_eq!(f.commit(&leader, -1, 2), ErrorCode::IllegalGeneration);
    assert_eq!(f.commit("m", generation, 2), ErrorCode::UnknownMemberId);
    assert_eq!(
        f.commit("", -1, 2),
        ErrorCode::UnknownMemberId,
        "a group with members takes none from outside"
    );
    assert_eq!(f.commit_as(&leader, Some("i"), generation, commit(0, 2)), ErrorCode::UnknownMemberId);
    assert_eq!(f.offset(0, false), (1, ErrorCode::None));
}

#[test]
fn a_member_commits_during_the_preparation_but_not_before_the_assignment() {
    let mut f = Fixture::new();
    let (leader, follower, generation) = f.pair();
    f.join(dynamic(&leader));
    assert_eq!(f.commit(&follower, generation, 1), ErrorCode::None);
    f.join(dynamic(&follower));
    assert_eq!(f.state(), GroupState::CompletingRebalance);
    assert_eq!(f.commit(&follower, generation, 2), ErrorCode::IllegalGeneration);
    assert_eq!(f.commit(&follower, generation + 1, 2), ErrorCode::RebalanceInProgress);
    assert_eq!(f.offset(0, false), (1, ErrorCode::None));
}

#[test]
fn a_commit_is_a_sign_of_life() {
    let mut f = Fixture::new();
    let (member, generation) = f.single();
    for offset in 0..3 {
        f.pass(9_000);
        assert_eq!(f.commit(&member, generation, offset), ErrorCode::None);
    }
    assert_eq!(f.state(), GroupState::Stable);
}

#[test]
fn a_group_that_was_emptied_keeps_its_offsets_and_takes_commits_from_outside() {
    let mut f = Fixture::new();
    let (member, generation) = f.single();
    f.commit(&member, generation, 1);
    f.leave(&member, None);
    assert_eq!(f.offset(0, false), (1, ErrorCode::None));
    assert_eq!(f.commit(&member, generation, 2), ErrorCode::UnknownMemberId);
    assert_eq!(f.commit("", -1, 3), ErrorCode::None);
    assert_eq!(f.offset(0, false), (3, ErrorCode::None));
}

#[test]
fn metadata_and_leader_epoch_come_back() {
    let mut f = Fixture::new();
    f.commit("", -1, 5);
    let fetched = f.groups.fetch_offsets("g", None, false);
    assert_eq!(fetched.len(), 1);
    assert_eq!((fetched[0].leader_epoch, fetched[0].metadata.as_str()), (7, "at 5"));
    let bare = OffsetCommit { metadata: None, leader_epoch: -1, ..commit(0, 6) };
    f.commit_as("", None, -1, bare);
    let fetched = f.groups.fetch_offsets("g", None, false);
    assert_eq!((fetched[0].leader_epoch, fetched[0].metadata.as_str()), (-1, ""));
}

#[test]
fn metadata_that_is_too_long_is_refused_for_its_partition_alone() {
    let mut f = Fixture::with(GroupSettings { max_offset_metadata: 4, ..GroupSettings::default() });
    let with = |partition, metadata: &str| OffsetCommit {
        metadata: Some(metadata.to_owned()),
        ..commit(partition, 1)
    };
    let request = CommitRequest {
        group: "g".to_owned(),
        generation: -1,
        member_id: String::new(),
        instance_id: None,
        offsets: vec![with(0, "äöüß"), with(1, "12345"), with(2, "1234")],
    };
    let mut out = Effects::new();
    let codes = f.groups.commit_offsets(f.now, request, &mut out);
    assert_eq!(codes, [ErrorCode::None, ErrorCode::OffsetMetadataTooLarge, ErrorCode::None]);
    assert_eq!([0, 1, 2].map(|partition| f.offset(partition, false).0), [1, -1, 1]);
}

#[test]
fn a_partition_without_an_offset_is_no_error() {
    let mut f = Fixture::new();
    assert_eq!(f.offset(0, true), (-1, ErrorCode::None));
    f.commit("", -1, 5);
    assert_eq!(f.offset(1, true), (-1, ErrorCode::None));
    assert!(f.groups.fetch_offsets("other", None, true).is_empty());
}

#[test]
fn all_offsets_come_in_order() {
    let mut f = Fixture::new();
    for partition in [2, 0, 1] {
        f.commit_as("", None, -1, commit(partition, i64::from(partition)));
    }
    let fetched = f.groups.fetch_offsets("g", None, false);
    let offsets: Vec<(i32, i64)> = fetched.iter().map(|f| (f.partition.partition, f.offset)).collect();
    assert_eq!(offsets, [(0, 0), (1, 1), (2, 2)]);
}

#[test]
fn the_empty_group_id_takes_offsets() {
    let mut f = Fixture::new();
    let request = CommitRequest {
        group: String::new(),
        generation: -1,
        member_id: String::new(),
        instance_id: None,
        offsets: vec![commit(0, 3)],
    };
    let mut out = Effects::new();
    assert_eq!(f.groups.commit_offsets(f.now, request, &mut out), [ErrorCode::None]);
    assert_eq!(f.groups.fetch_offsets("", None, false)[0].offset, 3);
}
