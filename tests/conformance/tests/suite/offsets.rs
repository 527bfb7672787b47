//! Committed offsets: by anybody, and by members of a group.

use flechtwerk_conformance::calls::groups::offset_commit;
use flechtwerk_conformance::*;
use kafka_protocol::messages::OffsetFetchRequest;

fn begun() -> (Client, String, String) {
    let mut client = Broker::get().client();
    let topic = client.topic(3);
    (client, topic, unique("group"))
}

#[test]
fn without_a_commit_there_is_no_offset_and_no_error() {
    let (mut client, topic, group) = begun();
    assert_eq!(client.fetch_offset(&group, &topic, 0, false), Ok((-1, String::new())));
    assert_eq!(client.fetch_offset(&group, &topic, 0, true), Ok((-1, String::new())));
}

#[test]
fn a_committed_offset_comes_back_with_its_metadata() {
    let (mut client, topic, group) = begun();
    let answer = client.call(&offset_commit(&group, &topic, &[(0, 5, "some words"), (2, 7, "")]));
    assert!(answer.topics[0].partitions.iter().all(|one| one.error_code == 0));
    assert_eq!(client.fetch_offset(&group, &topic, 0, false), Ok((5, "some words".to_owned())));
    assert_eq!(client.fetch_offset(&group, &topic, 2, true), Ok((7, String::new())));
    assert_eq!(client.committed(&group, &topic, 1), -1);
    assert_eq!(client.committed(&unique("another"), &topic, 0), -1);
}

#[test]
fn the_last_commit_counts_even_if_it_goes_back() {
    let (mut client, topic, group) = begun();
    for offset in [5, 9, 2] {
        assert_eq!(client.commit_offset(&group, &topic, 0, offset), Ok(()));
        assert_eq!(client.committed(&group, &topic, 0), offset);
    }
}

#[test]
fn the_leader_epoch_of_a_commit_comes_back() {
    let (mut client, topic, group) = begun();
    let mut request = offset_commit(&group, &topic, &[(0, 5, "")]);
    request.topics[0].partitions[0].committed_leader_epoch = 3;
    client.call(&request);
    let mut fetch = OffsetFetchRequest::default().with_group_id(text(&group).into());
    fetch.topics = None;
    let answer = client.call(&fetch);
    assert_eq!(answer.topics[0].partitions[0].committed_leader_epoch, 3);
}

#[test]
fn all_offsets_of_a_group_are_fetched_without_a_list() {
    let (mut client, topic, group) = begun();
    let other = client.topic(1);
    client.call(&offset_commit(&group, &topic, &[(0, 1, ""), (2, 3, "")]));
    client.call(&offset_commit(&group, &other, &[(0, 4, "")]));
    let answer =
        client.call(&OffsetFetchRequest::default().with_group_id(text(&group).into()).with_topics(None));
    let mut all: Vec<(String, i32, i64)> = Vec::new();
    for topic in &answer.topics {
        for one in &topic.partitions {
            all.push((topic.name.as_str().to_owned(), one.partition_index, one.committed_offset));
        }
    }
    all.sort_by_key(|(_, _, offset)| *offset);
    assert_eq!(all, [(topic.clone(), 0, 1), (topic, 2, 3), (other, 0, 4)]);
    let nobody =
        OffsetFetchRequest::default().with_group_id(text(&unique("nobody")).into()).with_topics(None);
    assert!(client.call(&nobody).topics.is_empty());
}

#[test]
fn metadata_above_the_limit_is_refused() {
    let (mut client, topic, group) = begun();
    let (fits, long) = ("m".repeat(4096), "m".repeat(4097));
    let answer = client.call(&offset_commit(&group, &topic, &[(0, 1, fits.as_str()), (1, 2, long.as_str())]));
    let codes: Vec<Answer> = answer.topics[0].partitions.iter().map(|one| code(one.error_code)).collect();
    assert_eq!(codes, [Ok(()), Err(Code::OffsetMetadataTooLarge)]);
    assert_eq!(client.committed(&group, &topic, 1), -1);
}

#[test]
fn a_commit_for_an_unknown_topic_or_partition_is_refused() {
    let (mut client, topic, group) = begun();
    let unknown = Err(Code::UnknownTopicOrPartition);
    assert_eq!(client.commit_offset(&group, &unique("nowhere"), 0, 1), unknown);
    assert_eq!(client.commit_offset(&group, &topic, 3, 1), unknown);
}

#[test]
fn a_generation_without_a_group_is_refused() {
    let (mut client, topic, group) = begun();
    let request = offset_commit(&group, &topic, &[(0, 1, "")])
        .with_generation_id_or_member_epoch(4)
        .with_member_id(text("nobody"));
    assert_eq!(code(client.call(&request).topics[0].partitions[0].error_code), Err(Code::IllegalGeneration));
}

#[test]
fn a_member_commits_in_its_generation() {
    let (mut client, topic, group) = begun();
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    assert_eq!(member.commit(&topic, 0, 5), Ok(()));
    assert_eq!(client.committed(&group, &topic, 0), 5);
}

#[test]
fn a_commit_of_another_generation_or_member_is_refused() {
    let (client, topic, group) = begun();
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    member.generation += 1;
    assert_eq!(member.commit(&topic, 0, 5), Err(Code::IllegalGeneration));
    member.generation -= 2;
    assert_eq!(member.commit(&topic, 0, 5), Err(Code::IllegalGeneration));
    member.generation += 1;
    member.id = "nobody".to_owned();
    assert_eq!(member.commit(&topic, 0, 5), Err(Code::UnknownMemberId));
}

#[test]
fn nobody_commits_from_outside_while_a_group_has_members() {
    let (mut client, topic, group) = begun();
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    assert_eq!(client.commit_offset(&group, &topic, 0, 5), Err(Code::UnknownMemberId));
    assert_eq!(member.leave(), Ok(()));
    assert_eq!(client.commit_offset(&group, &topic, 0, 5), Ok(()));
}

#[test]
fn a_member_that_left_can_not_commit() {
    let (client, topic, group) = begun();
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    assert_eq!(member.leave(), Ok(()));
    assert_eq!(member.commit(&topic, 0, 5), Err(Code::UnknownMemberId));
}

#[test]
fn a_member_commits_what_it_had_while_others_join() {
    let (mut client, topic, group) = begun();
    let mut first = Member::new(client.another(), &group);
    first.join_alone();
    let mut second = Member::new(client.another(), &group);
    second.start_join();
    wait_for("the group rebalances", || client.group_state(&group) == "PreparingRebalance");
    assert_eq!(first.commit(&topic, 0, 5), Ok(()));
    first.join().expect("a join");
    second.finish_join().expect("a join");
    assert_eq!(first.commit(&topic, 0, 6), Err(Code::RebalanceInProgress), "before the assignment");
    assert_eq!(client.committed(&group, &topic, 0), 5);
}

#[test]
fn the_offsets_of_a_deleted_topic_are_gone() {
    let (mut client, topic, group) = begun();
    let other = client.topic(1);
    assert_eq!(client.commit_offset(&group, &topic, 0, 5), Ok(()));
    assert_eq!(client.commit_offset(&group, &other, 0, 6), Ok(()));
    client.delete(&topic).expect("deleted");
    wait_for("the offset is gone", || client.committed(&group, &topic, 0) == -1);
    assert_eq!(client.committed(&group, &other, 0), 6);
}
