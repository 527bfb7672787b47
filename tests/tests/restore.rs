//! What is restored from a changelog, whatever lies in it (S4.4).

use std::collections::BTreeMap;
use std::time::Duration;

use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::{Case, Observer, STOP, wait_for, wait_within};
use rdkafka::producer::Producer;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const LIMIT: Duration = Duration::from_secs(20);

fn tally(rocksdb: bool) -> Case {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    if !rocksdb {
        return case;
    }
    let state_dir = case.rig.dir().join("state");
    case.arg("--store", "rocksdb").arg("--state-dir", &state_dir.to_string_lossy())
}

/// The same with an empty state folder, so that it must restore.
fn elsewhere(case: Case) -> Case {
    let state_dir = case.rig.dir().join("another-state");
    case.arg("--state-dir", &state_dir.to_string_lossy())
}

/// Adds one to each key, and gives the sums that come out.
fn sums(case: &Case, position: &mut i64, keys: &[String]) -> BTreeMap<String, u64> {
    case.write("words", &keys.iter().map(|key| (key.as_str(), "x")).collect::<Vec<_>>());
    *position += keys.len() as i64;
    case.wait_committed("words", *position);
    let stable = case.kafka.watermarks(case.topic("joined"), 0, "read_committed").1;
    let joined = case.observe("joined");
    let mut seen = Vec::new();
    wait_for("all outputs", || {
        seen = joined.seen();
        // The last offset is a marker.
        seen.last().is_some_and(|last| last.offset + 2 >= stable)
    });
    seen.iter().map(|one| (one.key_text(), one.value_text().parse().expect("a sum"))).collect()
}

/// A large state, restored whole: each key goes on from where it was.
#[track_caller]
fn large_state(rocksdb: bool) {
    let case = tally(rocksdb);
    let keys: Vec<String> = (0..20_000).map(|n| format!("key {n}")).collect();
    let mut position = 0;
    let mut instance = case.start();
    sums(&case, &mut position, &keys);
    // Some have more, and some are gone.
    sums(&case, &mut position, &keys[..1000]);
    let gone: Vec<(&str, &str)> = keys[500..1500].iter().map(|key| (key.as_str(), "delete")).collect();
    case.write("words", &gone);
    position += gone.len() as i64;
    case.wait_committed("words", position);
    assert_eq!(instance.terminate(STOP), 0);

    let case = elsewhere(case);
    let mut instance = case.start();
    assert!(instance.log().contains(" restored "), "{}", instance.log());
    let sums = sums(&case, &mut position, &keys);
    for (n, key) in keys.iter().enumerate() {
        let expected = if n < 500 {
            3
        } else if n < 1500 {
            1
        } else {
            2
        };
        assert_eq!(sums[key], expected, "{key}");
    }
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_large_state_is_restored_exactly_into_memory() {
    large_state(false);
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_large_state_is_restored_exactly_into_rocksdb() {
    large_state(true);
}

/// Writes a state by hand in a transaction that is aborted: what is read must not be this.
fn abort_a_change(case: &Case, key: &str) {
    let foreign = case.kafka.open_transaction(&case.kafka.unique("foreign"));
    let (key, value) = (Some([b"\0", key.as_bytes()].concat()), Some(b"\x01{\"n\":900}".to_vec()));
    for _ in 0..3 {
        let record = Write { key: key.clone(), value: value.clone(), partition: Some(0), ..Write::default() };
        send(&foreign, &case.changelog(), &record);
    }
    foreign.flush(LIMIT).expect("flush");
    foreign.abort_transaction(LIMIT).expect("abort");
}

#[test]
fn a_restore_reads_past_aborted_records_and_markers_at_the_end() {
    let case = tally(false);
    let (mut position, keys) = (0, ["a".to_owned(), "b".to_owned()]);
    for round in 1..=3 {
        let mut instance = case.start();
        let sums = sums(&case, &mut position, &keys);
        assert_eq!(sums.values().collect::<Vec<_>>(), [&round, &round]);
        assert_eq!(instance.terminate(STOP), 0);
        // Holes in the middle and at the end.
        abort_a_change(&case, "a");
        abort_a_change(&case, "b");
    }
}

#[test]
fn a_restore_of_nothing_but_aborted_records_finishes() {
    let case = tally(false);
    // Positions are committed, and the state is empty.
    assert_eq!(case.start().terminate(STOP), 0);
    abort_a_change(&case, "a");
    let mut instance = case.start();
    assert_eq!(sums(&case, &mut 0, &["a".to_owned()])["a"], 1);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_restore_reads_a_compacted_changelog() {
    let case = tally(false);
    let eager = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "100"),
        ("min.cleanable.dirty.ratio", "0.001"),
        ("min.compaction.lag.ms", "0"),
        ("max.compaction.lag.ms", "100"),
        ("delete.retention.ms", "1"),
    ];
    case.kafka.create_topic(&case.changelog(), 1, &eager);
    let keys: Vec<String> = (0..50).map(|n| format!("key {n}")).collect();
    let mut position = 0;
    let mut instance = case.start();
    for _ in 0..4 {
        sums(&case, &mut position, &keys);
    }
    // The first twenty are gone, and their tombstones go, too.
    let gone: Vec<(&str, &str)> = keys[..20].iter().map(|key| (key.as_str(), "delete")).collect();
    case.write("words", &gone);
    position += gone.len() as i64;
    case.wait_committed("words", position);
    // A segment is closed by the next record only.
    let mut written = 4 * 50 + 20;
    wait_within(Duration::from_secs(90), "the changelog is compacted", || {
        position += 1;
        written += 1;
        case.write("words", &[(&keys[49], "x")]);
        case.wait_committed("words", position);
        let changes = Observer::start(&case.kafka, &case.changelog());
        let end = case.kafka.watermarks(&case.changelog(), 0, "read_committed").1;
        wait_for("the changelog is read", || {
            changes.seen().last().is_some_and(|last| last.offset + 2 >= end)
        });
        changes.count() < written - 100
    });
    assert_eq!(instance.terminate(STOP), 0);

    let mut instance = case.start();
    let after = sums(&case, &mut position, &keys);
    for (n, key) in keys[..49].iter().enumerate() {
        assert_eq!(after[key], if n < 20 { 1 } else { 5 }, "{key}");
    }
    let more = (written - 4 * 50 - 20) as u64;
    assert_eq!(after[&keys[49]], 5 + more);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_restore_begins_where_the_changelog_begins() {
    let case = tally(false);
    let mut position = 0;
    let mut instance = case.start();
    for _ in 0..5 {
        sums(&case, &mut position, &["a".to_owned()]);
    }
    assert_eq!(instance.terminate(STOP), 0);
    // The older changes of the key are gone.
    case.kafka.delete_records(&case.changelog(), 0, 8);
    let mut instance = case.start();
    assert_eq!(sums(&case, &mut position, &["a".to_owned()])["a"], 6);
    assert_eq!(instance.terminate(STOP), 0);
}
