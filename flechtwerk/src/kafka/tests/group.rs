//! Membership.

use std::time::{Duration, Instant};

use super::support::*;
use crate::kafka::{ClientSettings, Kafka};
use crate::port::{ErrorKind, GroupEvent, Producer, Stability};

#[test]
fn committed_offsets_come_with_their_metadata_and_only_when_stable() {
    let kafka = kafka();
    let topic = topic(&kafka, "offsets", 2);
    let group = unique("offsets");
    let member = join(&kafka, &group, &topic, None);
    assert_eq!(member.assigned(), [0, 1]);
    let places = [at(&topic, 0), at(&topic, 1)];
    let committed = || persist(|| member.group.committed(&places, LONG)).unwrap();
    assert!(committed().iter().all(|committed| committed.offset.is_none() && committed.metadata.is_empty()));

    let mut producer = producer(&kafka, &unique("offsets"), &topic);
    let send = |producer: &mut dyn Producer, value: i64, stamp: &str| {
        producer.begin().unwrap();
        let offsets = [offset(&topic, 0, value, stamp), offset(&topic, 1, value + 1, stamp)];
        persist(|| producer.send_offsets(&offsets, &*member.group, LONG)).unwrap();
    };
    send(&mut *producer, 5, "owner:1:-");
    // Pending offsets are waited for, in vain as long as the transaction is open.
    let error = member.group.committed(&places, Duration::from_millis(300)).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::TimedOut | ErrorKind::Retriable), "{error}");
    commit(&mut *producer).unwrap();
    let read = committed();
    assert_eq!(read.iter().map(|committed| committed.offset).collect::<Vec<_>>(), [Some(5), Some(6)]);
    assert!(read.iter().all(|committed| committed.metadata == "owner:1:-"));

    send(&mut *producer, 50, "owner:2:-");
    producer.abort(LONG).unwrap();
    assert_eq!(committed(), read);
    assert_eq!(kafka.cluster().unwrap().committed(&group, &places, Stability::Stable, LONG).unwrap(), read);
    member.leave();
}

#[test]
fn a_member_that_left_is_an_error_of_its_generation() {
    let kafka = kafka();
    let topic = topic(&kafka, "left", 1);
    let group = unique("left");
    let member = join(&kafka, &group, &topic, None);
    member.assigned();
    let mut producer = producer(&kafka, &unique("left"), &topic);
    member.group.leave(false, LONG).unwrap();
    producer.begin().unwrap();
    producer.produce(&outputs(0, ["x"]), std::slice::from_ref(&topic)).unwrap();
    let error = producer.send_offsets(&[offset(&topic, 0, 1, "")], &*member.group, LONG).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Generation, "{error}");
    producer.abort(LONG).unwrap();
    // The producer is as good as before.
    write(&mut *producer, &topic, 0, ["y"]);
}

#[test]
fn an_old_generation_is_an_error_and_the_new_one_commits() {
    let kafka = kafka();
    let topic = topic(&kafka, "generation", 2);
    let group = unique("generation");
    let first = join(&kafka, &group, &topic, None);
    assert_eq!(first.assigned(), [0, 1]);
    let second = join(&kafka, &group, &topic, None);
    assert!(matches!(first.next(), GroupEvent::Revoked));
    let (ours, theirs) = (first.assigned(), second.assigned());
    assert_eq!([ours, theirs].concat().len(), 2);
    let mut producer = producer(&kafka, &unique("generation"), &topic);
    // Partitions that are not assigned to the member may be committed by it all the same: the fence is what
    // protects them.
    for (number, member) in [&first, &second].into_iter().enumerate() {
        producer.begin().unwrap();
        let offsets = [offset(&topic, 0, number as i64, "")];
        persist(|| producer.send_offsets(&offsets, &*member.group, LONG)).unwrap();
        commit(&mut *producer).unwrap();
    }
    second.leave();
    assert!(matches!(first.next(), GroupEvent::Revoked));
    assert_eq!(first.assigned(), [0, 1]);
    first.leave();
}

#[test]
fn a_leaving_member_hands_over_at_once_be_it_static_or_dynamic() {
    let kafka = kafka();
    let topic = topic(&kafka, "leave", 2);
    for instance in [None, Some("one")] {
        let group = unique("leave");
        let stays = join(&kafka, &group, &topic, Some("stays"));
        assert_eq!(stays.assigned(), [0, 1]);
        let leaves = join(&kafka, &group, &topic, instance);
        leaves.assigned();
        assert_eq!(stays.assigned().len(), 1);
        let begun = Instant::now();
        leaves.leave();
        assert_eq!(stays.assigned(), [0, 1]);
        // Long before a session (6 s) could have expired.
        assert!(begun.elapsed() < Duration::from_secs(5), "{instance:?}");
        stays.leave();
        assert_eq!(kafka.cluster().unwrap().group_members(&group, LONG).unwrap(), 0);
    }
}

#[test]
fn a_static_member_comes_back_to_what_it_had() {
    let kafka = kafka();
    let topic = topic(&kafka, "static", 4);
    for vanish in [true, false] {
        let group = unique("static");
        let other = join(&kafka, &group, &topic, Some("other"));
        other.assigned();
        let member = join(&kafka, &group, &topic, Some("member"));
        let had = member.assigned();
        assert_eq!(had.len(), 2);
        assert_eq!(other.assigned().len(), 2);
        if vanish {
            drop(member);
        } else {
            member.group.leave(true, LONG).unwrap();
        }
        assert_eq!(kafka.cluster().unwrap().group_members(&group, LONG).unwrap(), 2);
        let member = join(&kafka, &group, &topic, Some("member"));
        assert_eq!(member.assigned(), had);
        member.leave();
        assert_eq!(other.assigned(), [0, 1, 2, 3]);
        other.leave();
    }
}

#[test]
fn a_taken_instance_id_ends_the_older_member() {
    let kafka = kafka();
    let topic = topic(&kafka, "taken", 1);
    let group = unique("taken");
    let old = join(&kafka, &group, &topic, Some("same"));
    assert_eq!(old.assigned(), [0]);
    let new = join(&kafka, &group, &topic, Some("same"));
    assert_eq!(new.assigned(), [0]);
    let error = eventually("the end of the older", || match old.next() {
        GroupEvent::Failed(error) => Some(error),
        _ => None,
    });
    assert_eq!(error.kind, ErrorKind::FencedInstance, "{error}");
    let mut producer = producer(&kafka, &unique("taken"), &topic);
    producer.begin().unwrap();
    let error =
        persist(|| producer.send_offsets(&[offset(&topic, 0, 1, "")], &*old.group, LONG)).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::FencedInstance | ErrorKind::Generation), "{error}");
    producer.abort(LONG).unwrap();
    // It is fatal for its client, which must not hang when it is told to leave.
    old.group.leave(false, LONG).unwrap();
    new.leave();
}

#[test]
fn a_session_that_the_broker_refuses_fails_the_membership() {
    let kafka = Kafka::new(ClientSettings { session_timeout: Duration::from_secs(3_600), ..settings() });
    let topic = topic(&kafka, "long", 1);
    let member = join(&kafka, &unique("long"), &topic, None);
    let GroupEvent::Failed(error) = member.next() else { panic!("no failure") };
    assert_eq!(
        (error.kind, error.code.as_str()),
        (ErrorKind::Hopeless, "INVALID_SESSION_TIMEOUT"),
        "{error}"
    );
}

#[test]
fn a_panic_of_the_receiver_is_told_and_not_swallowed() {
    let kafka = kafka();
    let topic = topic(&kafka, "panic", 1);
    let (send, failures) = std::sync::mpsc::sync_channel(10);
    let events = Box::new(move |event| match event {
        GroupEvent::Failed(error) => send.send(error).unwrap(),
        _ => panic!("on purpose"),
    });
    let group = kafka.join(&unique("panic"), std::slice::from_ref(&topic), None, events).unwrap();
    let error = failures.recv_timeout(LONG).unwrap();
    assert_eq!(error.kind, ErrorKind::Fatal, "{error}");
    group.leave(false, LONG).unwrap();
}

#[test]
fn a_spare_leaves_without_having_had_anything() {
    let kafka = kafka();
    let topic = topic(&kafka, "spare", 1);
    let group = unique("spare");
    let busy = join(&kafka, &group, &topic, Some("a"));
    assert_eq!(busy.assigned(), [0]);
    let spare = join(&kafka, &group, &topic, Some("b"));
    assert_eq!(spare.assigned(), [0; 0]);
    spare.leave();
    eventually("the spare's leaving", || {
        (kafka.cluster().unwrap().group_members(&group, LONG).unwrap() == 1).then_some(())
    });
    busy.leave();
}

#[test]
fn subscriptions_of_all_members_can_be_had() {
    let kafka = kafka();
    let (first, second) = (topic(&kafka, "ours", 1), topic(&kafka, "theirs", 1));
    let group = unique("subscriptions");
    let ours = join(&kafka, &group, &first, None);
    ours.assigned();
    let theirs = join(&kafka, &group, &second, None);
    theirs.assigned();
    let mut topics: Vec<_> = persist(|| ours.group.subscriptions(LONG))
        .unwrap()
        .into_iter()
        .flat_map(|(_, topics)| topics)
        .collect();
    topics.sort();
    assert_eq!(topics, [&*first, &*second]);
    ours.leave();
    theirs.leave();
}
