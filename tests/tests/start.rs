//! Where a task begins, and what it waits for before it does (S4).

use std::time::Duration;

use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::{Case, Instance, STOP, Seen, wait_for};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::Producer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn earliest_is_resolved_and_committed_before_the_first_record_is_read() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let gate = case.gate("gate");
    case.write("words", &[("a", "x"), ("a", "x"), ("a", "x"), ("gate", &gate.value()), ("a", "x")]);
    case.kafka.delete_records(case.topic("words"), 0, 3);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    // It has the first record in its hands and can't have committed that.
    gate.wait_arrived();
    let (position, stamp) = case.committed("words").expect("the first position");
    assert_eq!((position, stamp.counter), (3, 1));
    gate.open();
    let values: Vec<_> = joined.wait(2).iter().map(Seen::value_text).collect();
    assert_eq!(values.iter().filter(|value| *value == "1").count(), 1);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn latest_is_resolved_and_committed_before_the_first_record_is_read() {
    let case = Case::new(RIG, "tail", 1, &["words", "joined"]);
    case.write("words", &[("a", "old"); 5]);
    let joined = case.observe("joined");
    let mut instance = case.start();
    let (position, stamp) = case.committed("words").expect("the first position");
    assert_eq!((position, stamp.counter), (5, 1));
    // Killed before it has read anything: the next one begins where this one would have.
    instance.kill();
    case.write("words", &[("a", "new")]);
    let mut instance = case.rig.start();
    case.wait_committed("words", 6);
    let values: Vec<_> = joined.wait(1).iter().map(Seen::value_text).collect();
    assert_eq!(values, ["new"]);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_foreign_open_transaction_on_the_changelog_is_waited_for() {
    let case = Case::new(RIG, "tally", 2, &["words", "joined"]);
    let on = |partition, key: &str| Write { partition: Some(partition), ..Write::new(key, "x") };
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    case.kafka.write(case.topic("words"), [on(0, "a"), on(1, "b")]);
    joined.wait(2);
    assert_eq!(instance.terminate(STOP), 0);

    let foreign = case.kafka.open_transaction(&case.kafka.unique("foreign"));
    let (key, value) = (Some(b"\0a".to_vec()), Some(b"\x01{\"n\":41}".to_vec()));
    send(&foreign, &case.changelog(), &Write { key, value, partition: Some(0), ..Write::default() });
    foreign.flush(LIMIT).expect("flush");
    let mut instance = case.rig.start();
    instance.wait_for_log("holds the changelog back at ");
    // The other task works meanwhile, and the instance is a member.
    case.kafka.write(case.topic("words"), [on(0, "a"), on(1, "b"), on(1, "b")]);
    joined.wait(4);
    assert_eq!(case.committed_of("words", 0).expect("committed").0, 1);
    assert_eq!(case.kafka.members(&case.application_id()), 1);
    // What was committed there counts.
    foreign.commit_transaction(LIMIT).expect("commit");
    let seen = joined.wait(5);
    assert_eq!(seen.iter().rfind(|one| one.key_text() == "a").expect("the last of a").value_text(), "42");
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_foreign_transaction_on_the_changelog_that_is_aborted_leaves_nothing() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let joined = case.observe("joined");
    case.write("words", &[("a", "x")]);
    let mut instance = case.rig.start();
    joined.wait(1);
    assert_eq!(instance.terminate(STOP), 0);

    let foreign = case.kafka.open_transaction(&case.kafka.unique("foreign"));
    let (key, value) = (Some(b"\0a".to_vec()), Some(b"\x01{\"n\":41}".to_vec()));
    send(&foreign, &case.changelog(), &Write { key, value, partition: Some(0), ..Write::default() });
    foreign.flush(LIMIT).expect("flush");
    let mut instance = case.rig.start();
    instance.wait_for_log("holds the changelog back at ");
    foreign.abort_transaction(LIMIT).expect("abort");
    case.write("words", &[("a", "x")]);
    let values: Vec<_> = joined.wait(2).iter().map(Seen::value_text).collect();
    assert_eq!(values, ["1", "2"]);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn committed_offsets_that_are_not_stable_yet_are_asked_for_again() {
    let case = Case::new(RIG, "describe", 1, &["words", "joined"]).arg("--log", "info,flechtwerk=debug");
    let joined = case.observe("joined");
    let first = case.start();
    let second = case.rig.start();
    let holds = |instance: &Instance, partitions: &str| {
        let log = instance.log();
        log.lines().rfind(|line| line.contains(" assigned ")).is_some_and(|line| line.ends_with(partitions))
    };
    wait_for("one has the task and the other nothing", || {
        (holds(&first, "{0}") && holds(&second, "{}")) || (holds(&first, "{}") && holds(&second, "{0}"))
    });
    let (mut owner, mut other) = if holds(&first, "{0}") { (first, second) } else { (second, first) };
    let before = other.log().matches("task is running").count();
    case.write("words", &[("a", "x"); 3]);
    joined.wait(3);
    case.wait_committed("words", 3);
    // Somebody else's commit to the group is on its way while the task moves.
    let pending = case.kafka.open_transaction(&case.kafka.unique("pending"));
    let stranger: BaseConsumer =
        case.kafka.config().set("group.id", case.application_id()).create().expect("a consumer");
    let metadata = stranger.group_metadata().expect("the group's metadata");
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(case.topic("words"), 0, Offset::Offset(1)).expect("an offset");
    pending.send_offsets_to_transaction(&offsets, &metadata, LIMIT).expect("send offsets");
    assert_eq!(owner.terminate(STOP), 0);
    other.wait_for_log("asking again: read the committed offsets");
    // A wait that gets long is told to everybody, with what to do about it.
    other.wait_for_log("still can't read the committed offsets of partition 0");
    assert!(other.log().contains("kafka-transactions.sh find-hanging"), "{}", other.log());
    assert_eq!(other.log().matches("task is running").count(), before, "{}", other.log());
    pending.commit_transaction(LIMIT).expect("commit");
    // It begins where the group is now, and not where it was when it was asked first.
    let values: Vec<_> = joined.wait(5)[3..].iter().map(Seen::value_text).collect();
    assert!(values[0].starts_with("0/1@") && values[1].starts_with("0/2@"), "{values:?}");
    assert_eq!(other.terminate(STOP), 0);
}
