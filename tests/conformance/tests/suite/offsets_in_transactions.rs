//! Offsets that are committed as part of a transaction.

use flechtwerk_conformance::*;

fn begun() -> (Client, String, String, Producer) {
    let mut client = Broker::get().client();
    let topic = client.topic(2);
    let producer = client.transactional_producer();
    (client, topic, unique("group"), producer)
}

/// A group with one member, for the checks of its identity.
fn with_member() -> (Client, String, Member, Producer) {
    let (mut client, topic, group, producer) = begun();
    let mut member = Member::new(client.another(), &group).fixed("instance");
    member.join_alone();
    producer.add_offsets(&mut client, &group).expect("added");
    (client, topic, member, producer)
}

fn commit_as(client: &mut Client, topic: &str, member: &Member, producer: &Producer) -> Answer {
    let request = producer
        .offset_commit(&member.group, topic, 0, 5)
        .with_generation_id(member.generation)
        .with_member_id(text(&member.id))
        .with_group_instance_id(member.instance.as_deref().map(text));
    code(client.call(&request).topics[0].partitions[0].error_code)
}

#[test]
fn pending_offsets_are_seen_after_the_commit() {
    let (mut client, topic, group, producer) = begun();
    assert_eq!(client.commit_offset(&group, &topic, 0, 3), Ok(()));
    producer.add_offsets(&mut client, &group).expect("added");
    assert_eq!(producer.commit_offset(&mut client, &group, &topic, 0, 5), Ok(()));
    assert_eq!(client.committed(&group, &topic, 0), 3);
    producer.commit(&mut client);
    wait_for("the offset is committed", || client.committed(&group, &topic, 0) == 5);
}

#[test]
fn pending_offsets_are_dropped_by_an_abort() {
    let (mut client, topic, group, producer) = begun();
    assert_eq!(client.commit_offset(&group, &topic, 0, 3), Ok(()));
    producer.add_offsets(&mut client, &group).expect("added");
    assert_eq!(producer.commit_offset(&mut client, &group, &topic, 0, 5), Ok(()));
    producer.abort(&mut client);
    wait_for("the offset is stable", || client.fetch_offset(&group, &topic, 0, true).is_ok());
    assert_eq!(client.committed(&group, &topic, 0), 3);
}

#[test]
fn pending_offsets_are_dropped_when_their_producer_is_fenced() {
    let (mut client, topic, group, producer) = begun();
    producer.add_offsets(&mut client, &group).expect("added");
    assert_eq!(producer.commit_offset(&mut client, &group, &topic, 0, 5), Ok(()));
    client.producer_named(&producer.transactional_id);
    wait_for("the offset is stable", || client.fetch_offset(&group, &topic, 0, true).is_ok());
    assert_eq!(client.committed(&group, &topic, 0), -1);
}

#[test]
fn pending_offsets_are_unstable_for_those_who_ask_for_stable_ones() {
    let (mut client, topic, group, producer) = begun();
    producer.add_offsets(&mut client, &group).expect("added");
    assert_eq!(
        client.fetch_offset(&group, &topic, 0, true),
        Ok((-1, String::new())),
        "nothing is pending yet"
    );
    assert_eq!(producer.commit_offset(&mut client, &group, &topic, 0, 5), Ok(()));
    assert_eq!(client.fetch_offset(&group, &topic, 0, true), Err(Code::UnstableOffsetCommit));
    assert_eq!(client.fetch_offset(&group, &topic, 1, true), Ok((-1, String::new())), "another partition");
    assert_eq!(client.fetch_offset(&group, &topic, 0, false), Ok((-1, String::new())));
    producer.commit(&mut client);
    wait_for("the offset is stable", || {
        client.fetch_offset(&group, &topic, 0, true) == Ok((5, String::new()))
    });
}

#[test]
fn metadata_come_with_the_offset() {
    let (mut client, topic, group, producer) = begun();
    producer.add_offsets(&mut client, &group).expect("added");
    let mut request = producer.offset_commit(&group, &topic, 0, 5);
    request.topics[0].partitions[0].committed_metadata = Some(text("some words"));
    assert_eq!(code(client.call(&request).topics[0].partitions[0].error_code), Ok(()));
    producer.commit(&mut client);
    let wanted = Ok((5, "some words".to_owned()));
    wait_for("the offset is committed", || client.fetch_offset(&group, &topic, 0, true) == wanted);
}

#[test]
fn the_last_offset_of_a_transaction_counts() {
    let (mut client, topic, group, producer) = begun();
    producer.add_offsets(&mut client, &group).expect("added");
    for offset in [5, 9, 7] {
        assert_eq!(producer.commit_offset(&mut client, &group, &topic, 0, offset), Ok(()));
    }
    producer.commit(&mut client);
    wait_for("the offset is committed", || client.committed(&group, &topic, 0) == 7);
}

#[test]
fn a_plain_commit_after_a_pending_one_stays() {
    let (mut client, topic, group, producer) = begun();
    producer.add_offsets(&mut client, &group).expect("added");
    assert_eq!(producer.commit_offset(&mut client, &group, &topic, 0, 5), Ok(()));
    assert_eq!(producer.commit_offset(&mut client, &group, &topic, 1, 6), Ok(()));
    assert_eq!(client.commit_offset(&group, &topic, 0, 9), Ok(()));
    assert_eq!(client.committed(&group, &topic, 0), 9);
    producer.commit(&mut client);
    wait_for("the transaction has reached the group", || client.committed(&group, &topic, 1) == 6);
    assert_eq!(client.committed(&group, &topic, 0), 9);
}

#[test]
fn a_plain_commit_before_a_pending_one_is_replaced() {
    let (mut client, topic, group, producer) = begun();
    assert_eq!(client.commit_offset(&group, &topic, 0, 9), Ok(()));
    producer.add_offsets(&mut client, &group).expect("added");
    assert_eq!(producer.commit_offset(&mut client, &group, &topic, 0, 5), Ok(()));
    producer.commit(&mut client);
    wait_for("the offset is committed", || client.committed(&group, &topic, 0) == 5);
}

#[test]
fn two_producers_commit_offsets_of_one_group_in_the_order_of_their_requests() {
    let (mut client, topic, group, one) = begun();
    let other = client.transactional_producer();
    one.add_offsets(&mut client, &group).expect("added");
    other.add_offsets(&mut client, &group).expect("added");
    assert_eq!(one.commit_offset(&mut client, &group, &topic, 0, 5), Ok(()));
    assert_eq!(other.commit_offset(&mut client, &group, &topic, 0, 7), Ok(()));
    other.commit(&mut client);
    wait_for("the second one is committed", || client.committed(&group, &topic, 0) == 7);
    assert_eq!(client.fetch_offset(&group, &topic, 0, true), Err(Code::UnstableOffsetCommit), "one is open");
    one.commit(&mut client);
    wait_for("the offset is stable", || client.fetch_offset(&group, &topic, 0, true).is_ok());
    assert_eq!(client.committed(&group, &topic, 0), 7);
}

#[test]
fn offsets_and_records_of_a_transaction_are_committed_together() {
    let (mut client, topic, group, mut producer) = begun();
    for commit in [false, true] {
        producer.write(&mut client, &topic, 0, &[if commit { "seen" } else { "gone" }]);
        producer.add_offsets(&mut client, &group).expect("added");
        assert_eq!(producer.commit_offset(&mut client, &group, &topic, 1, 5), Ok(()));
        producer.end(&mut client, commit).expect("the end");
    }
    wait_for("the offset is committed", || client.committed(&group, &topic, 1) == 5);
    assert_eq!(client.values(&topic, 0, COMMITTED), ["seen"]);
}

#[test]
fn offsets_of_a_group_outside_the_transaction_are_refused() {
    let (mut client, topic, group, producer) = begun();
    producer.add_offsets(&mut client, &unique("another")).expect("added");
    let answer = producer.commit_offset(&mut client, &group, &topic, 0, 5);
    // Whether the other group shares its coordinator's partition decides whether the broker notices.
    assert!(matches!(answer, Err(Code::InvalidTxnState) | Ok(())), "{answer:?}");
    let stranger = client.transactional_producer();
    assert_eq!(stranger.commit_offset(&mut client, &group, &topic, 0, 5), Err(Code::InvalidTxnState));
    assert_eq!(client.committed(&group, &topic, 0), -1);
}

#[test]
fn an_unknown_topic_in_a_transaction_is_refused() {
    let (mut client, topic, group, producer) = begun();
    producer.add_offsets(&mut client, &group).expect("added");
    let unknown = Err(Code::UnknownTopicOrPartition);
    assert_eq!(producer.commit_offset(&mut client, &group, &unique("nowhere"), 0, 5), unknown);
    assert_eq!(producer.commit_offset(&mut client, &group, &topic, 2, 5), unknown);
}

#[test]
fn a_member_commits_in_a_transaction_in_its_generation() {
    let (mut client, topic, member, producer) = with_member();
    assert_eq!(commit_as(&mut client, &topic, &member, &producer), Ok(()));
    producer.commit(&mut client);
    wait_for("the offset is committed", || client.committed(&member.group, &topic, 0) == 5);
}

#[test]
fn a_stale_generation_is_refused_in_a_transaction() {
    let (mut client, topic, mut member, producer) = with_member();
    for generation in [member.generation + 1, member.generation - 1] {
        member.generation = generation;
        assert_eq!(commit_as(&mut client, &topic, &member, &producer), Err(Code::IllegalGeneration));
    }
    assert!(client.fetch_offset(&member.group, &topic, 0, true).is_ok(), "nothing is pending");
}

#[test]
fn an_unknown_member_is_refused_in_a_transaction() {
    let (mut client, topic, mut member, producer) = with_member();
    (member.id, member.instance) = ("nobody".to_owned(), None);
    assert_eq!(commit_as(&mut client, &topic, &member, &producer), Err(Code::UnknownMemberId));
}

#[test]
fn a_member_with_the_instance_of_another_is_refused_in_a_transaction() {
    let (mut client, topic, mut member, producer) = with_member();
    member.instance = Some("nobody's".to_owned());
    assert_eq!(commit_as(&mut client, &topic, &member, &producer), Err(Code::UnknownMemberId));
    member.instance = Some("instance".to_owned());
    member.id = "nobody".to_owned();
    assert_eq!(commit_as(&mut client, &topic, &member, &producer), Err(Code::FencedInstanceId));
}

#[test]
fn a_member_that_left_is_refused_in_a_transaction() {
    let (mut client, topic, group, producer) = begun();
    let mut member = Member::new(client.another(), &group);
    member.join_alone();
    producer.add_offsets(&mut client, &group).expect("added");
    assert_eq!(member.leave(), Ok(()));
    assert_eq!(commit_as(&mut client, &topic, &member, &producer), Err(Code::UnknownMemberId));
}

/// A producer that says nothing about members is not asked about them.
#[test]
fn a_producer_without_a_member_commits_even_where_there_are_members() {
    let (mut client, topic, member, producer) = with_member();
    assert_eq!(producer.commit_offset(&mut client, &member.group, &topic, 0, 5), Ok(()));
    producer.commit(&mut client);
    wait_for("the offset is committed", || client.committed(&member.group, &topic, 0) == 5);
}
