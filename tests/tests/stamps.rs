//! What every transaction commits: positions, and the stamp that names it (S3.3).

use std::time::Duration;

use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::probe::ANY_PORT;
use flechtwerk_tests::{Case, Probe, STOP, Stamp, wait_for};
use rdkafka::producer::Producer;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const LIMIT: Duration = Duration::from_secs(20);

/// The stamp of a partition of the join, the same on both inputs, and the positions.
#[track_caller]
fn stamp(case: &Case, partition: i32) -> (i64, i64, Stamp) {
    let profiles = case.committed_of("profiles", partition).expect("a position in profiles");
    let words = case.committed_of("words", partition).expect("a position in words");
    assert_eq!(profiles.1, words.1, "one transaction, one stamp");
    (profiles.0, words.0, words.1)
}

#[test]
fn every_transaction_commits_all_positions_with_the_next_stamp() {
    let case = Case::new(RIG, "join", 2, &["profiles", "words", "joined"]);
    let on = |partition, value: &str| Write { partition: Some(partition), ..Write::new("a", value) };
    let mut instance = case.start();
    wait_for("both first positions", || {
        (0..2).all(|partition| case.committed_of("words", partition).is_some())
    });
    let (_, _, first) = stamp(&case, 0);
    let (_, _, other) = stamp(&case, 1);
    assert_eq!((first.counter, other.counter), (1, 1));
    assert_ne!(first.owner, other.owner, "each task fences for itself");
    assert_eq!(first.changelog, other.changelog);
    assert_ne!(first.changelog, "-");

    // Records of one input only; the other's position is committed as well.
    for n in 1..=3 {
        case.write("words", &[("a", "x")]);
        case.wait_committed("words", n);
        let (profiles, words, stamp) = stamp(&case, 0);
        assert_eq!((profiles, words), (0, n));
        assert_eq!((&stamp.owner, stamp.counter), (&first.owner, n as u64 + 1));
    }
    case.kafka.write(case.topic("profiles"), [on(0, "p")]);
    case.wait_committed("profiles", 1);
    assert_eq!(stamp(&case, 0).2.counter, 5);
    assert_eq!(stamp(&case, 1), (0, 0, other), "nothing happened there");
    assert_eq!(instance.terminate(STOP), 0);

    // A new fence, a new owner; the counter goes on.
    let mut instance = case.start();
    case.write("words", &[("a", "x")]);
    case.wait_committed("words", 4);
    let (profiles, words, stamp) = stamp(&case, 0);
    assert_eq!((profiles, words, stamp.counter), (1, 4, 6));
    assert_ne!(stamp.owner, first.owner);
    assert_eq!(stamp.changelog, first.changelog);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_position_behind_trailing_markers_and_aborted_records_is_committed_at_a_clean_stop() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]).arg(ANY_PORT.0, ANY_PORT.1);
    let record = Write { partition: Some(0), ..Write::new("a", "x") };
    let producer = case.kafka.open_transaction(&case.kafka.unique("writer"));
    send(&producer, case.topic("words"), &record);
    producer.commit_transaction(LIMIT).expect("commit");
    producer.begin_transaction().expect("begin");
    send(&producer, case.topic("words"), &record);
    producer.flush(LIMIT).expect("flush");
    producer.abort_transaction(LIMIT).expect("abort");
    let end = case.kafka.watermarks(case.topic("words"), 0, "read_committed").1;
    assert_eq!(end, 4, "two records and two markers");
    let joined = case.observe("joined");
    // The stop may come before the end was seen: it is told by an answer that Kafka keeps back for a while. From the second time
    // on, an instance runs until its lag was measured, which is long after the first such answer on any but a stuck machine.
    for attempt in 0..10 {
        let mut instance = case.start();
        joined.wait(1);
        if attempt > 0 {
            let probe = Probe::of(&instance);
            wait_for("a measured lag", || probe.metric("flechtwerk_lag_records", "").is_some());
        }
        assert_eq!(instance.terminate(STOP), 0);
        if case.committed("words").is_some_and(|(position, _)| position == end) {
            break;
        }
    }
    assert_eq!(case.committed("words").expect("committed").0, end);
    assert_eq!(joined.count(), 1);
}
