//! Administration.

use std::sync::Arc;
use std::time::Duration;

use super::support::*;
use crate::port::{ErrorKind, Stability, TopicPartition};

#[test]
fn topics_come_and_go_and_have_an_id_of_their_own() {
    let cluster = kafka().cluster().unwrap();
    assert!(cluster.brokers(LONG).unwrap() >= 1);
    let (name, absent) = (unique("made-anew"), unique("absent"));
    let wanted =
        new_topic(&name, 3, &[("cleanup.policy", "delete,compact"), ("max.message.bytes", "2000000")]);
    create(&*cluster, &wanted);
    // One that exists is no error.
    create(&*cluster, &wanted);
    let names = [Arc::clone(&name), absent];
    let first = cluster.topics(&names, LONG).unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), [&name]);
    let first = &first[&name];
    assert_eq!((first.partitions, first.cleanup_policy.as_str()), (3, "compact,delete"));
    assert_eq!(first.max_message_bytes, Some(2_000_000));
    assert_eq!(first.id.len(), 22);

    cluster.delete_topics(&names, LONG).unwrap();
    assert!(cluster.topics(&names, LONG).unwrap().is_empty());
    create(&*cluster, &wanted);
    let second = &cluster.topics(&names, LONG).unwrap()[&name];
    assert_ne!(first.id, second.id);
}

#[test]
fn a_topic_that_cannot_be_created_is_one_error_among_others() {
    let cluster = kafka().cluster().unwrap();
    let (good, bad) = (unique("good"), unique("bad"));
    let topics = [new_topic(&good, 1, &[]), new_topic(&bad, 1, &[("cleanup.policy", "no-such-policy")])];
    let outcomes = cluster.create_topics(&topics, LONG).unwrap();
    for (name, outcome) in outcomes {
        if name == good {
            outcome.unwrap();
        } else {
            let error = outcome.unwrap_err();
            assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Hopeless, "INVALID_CONFIG"));
            assert!(error.text.contains(&*bad), "{error}");
        }
    }
}

#[test]
fn offsets_are_found_by_time_and_by_end() {
    let kafka = kafka();
    let cluster = kafka.cluster().unwrap();
    let topic = topic(&kafka, "times", 1);
    let place = at(&topic, 0);
    let mut producer = producer(&kafka, &unique("times"), &topic);
    write(&mut *producer, &topic, 0, ["a", "b", "c"]);
    // Three records and the marker of the commit, which is written when the commit has already been answered.
    eventually("the marker", || {
        let marks = cluster.watermarks(&place, LONG).unwrap();
        assert_eq!(marks.low, 0);
        (marks.stable == 4 && marks.high == 4).then_some(())
    });
    let first = 1_700_000_000_000;
    assert_eq!(cluster.offset_for_time(&place, first, LONG).unwrap(), 0);
    assert_eq!(cluster.offset_for_time(&place, first + 2, LONG).unwrap(), 2);
    // The end, since the marker has the broker's time and is no record.
    let year_3000 = 32_503_680_000_000;
    assert_eq!(cluster.offset_for_time(&place, year_3000, LONG).unwrap(), 4);

    let error = cluster.watermarks(&TopicPartition { partition: 7, ..place }, LONG).unwrap_err();
    // It has no leader, and nobody knows whether it ever will.
    assert_eq!(error.kind, ErrorKind::Retriable, "{error}");
    assert!(error.text.contains(&*topic), "{error}");
}

#[test]
fn a_group_without_members_can_be_committed_to_and_one_with_members_can_not() {
    let kafka = kafka();
    let cluster = kafka.cluster().unwrap();
    let topic = topic(&kafka, "reset", 2);
    let group = unique("reset");
    // The first group of a cluster has to wait for its coordinator.
    assert_eq!(persist(|| cluster.group_members(&group, LONG)).unwrap(), 0);
    let places = [at(&topic, 0), at(&topic, 1)];
    let none = persist(|| cluster.committed(&group, &places, Stability::Stable, LONG)).unwrap();
    assert!(none.iter().all(|committed| committed.offset.is_none() && committed.metadata.is_empty()));

    persist(|| cluster.commit(&group, &[offset(&topic, 1, 0, "resetting")], LONG)).unwrap();
    let committed = cluster.committed(&group, &places, Stability::Stable, LONG).unwrap();
    let of = |partition| committed.iter().find(|committed| committed.at.partition == partition).unwrap();
    assert_eq!((of(0).offset, of(0).metadata.as_str()), (None, ""));
    assert_eq!((of(1).offset, of(1).metadata.as_str()), (Some(0), "resetting"));

    let member = join(&kafka, &group, &topic, None);
    assert_eq!(member.assigned(), [0, 1]);
    assert_eq!(cluster.group_members(&group, LONG).unwrap(), 1);
    let error = cluster.commit(&group, &[offset(&topic, 1, 1, "")], LONG).unwrap_err();
    assert!(error.text.contains("has members"), "{error}");
    member.leave();
    assert_eq!(cluster.group_members(&group, LONG).unwrap(), 0);
}

#[test]
fn a_cluster_that_does_not_answer_is_a_timeout() {
    let mut settings = settings();
    settings.bootstrap_servers = "127.0.0.1:1".to_owned();
    let cluster = crate::kafka::Kafka::new(settings).cluster().unwrap();
    let error = cluster.brokers(Duration::from_millis(300)).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::TimedOut | ErrorKind::Retriable), "{error}");
    // Why is what its client knows.
    assert!(error.text.contains("Connection refused"), "{error}");
}
