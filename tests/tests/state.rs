//! Whose state a record sees, and what of it reaches the changelog (S2.3, S2.5, S2.6, S2.7).

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, Observer, STOP, Seen};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

fn tally(partitions: i32) -> Case {
    Case::new(RIG, "tally", partitions, &["words", "joined"])
}

/// The changelog as key and value, without the kind and version bytes; `-` for a tombstone.
fn changes(case: &Case, count: usize) -> Vec<(String, String)> {
    let seen = Observer::start(&case.kafka, &case.changelog()).wait(count);
    seen.iter().map(change).collect()
}

fn change(record: &Seen) -> (String, String) {
    let key = record.key.as_deref().expect("a key");
    let value = record.value.as_deref().map_or("-".into(), |value| String::from_utf8_lossy(&value[1..]));
    (String::from_utf8_lossy(&key[1..]).into_owned(), value.into_owned())
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn state_belongs_to_partition_and_key() {
    let case = tally(2);
    // The same key on both partitions, which a partitioner would never do.
    let records = [0, 1, 0].map(|partition| Write { partition: Some(partition), ..Write::new("a", "x") });
    case.kafka.write(case.topic("words"), records);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    let mut sums: Vec<_> = joined.wait(3).iter().map(Seen::value_text).collect();
    sums.sort();
    assert_eq!(sums, ["1", "1", "2"]);
    // Each in the changelog partition of its own number.
    let changelog = Observer::start(&case.kafka, &case.changelog());
    let of = |seen: &[Seen], partition: i32| -> Option<String> {
        seen.iter().filter(|one| one.partition == partition).map(|one| change(one).1).next_back()
    };
    flechtwerk_tests::wait_for("both states", || {
        let seen = changelog.seen();
        (of(&seen, 0), of(&seen, 1)) == (Some(r#"{"n":2}"#.into()), Some(r#"{"n":1}"#.into()))
    });
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_key_function_refines_the_records_key() {
    let case = Case::new(RIG, "count_letters", 1, &["words", "joined"]);
    case.write("words", &[("k", "apple"), ("k", "bean"), ("k", "acorn"), ("other", "arrow")]);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    let mut seen: Vec<_> = joined.wait(4).iter().map(|one| (one.key_text(), one.value_text())).collect();
    seen.sort();
    assert_eq!(seen, pairs(&[("k", "a1"), ("k", "a2"), ("k", "b1"), ("other", "a1")]));
    let mut changes = changes(&case, 3);
    changes.sort();
    assert_eq!(changes, pairs(&[("k/a", r#"{"n":2}"#), ("k/b", r#"{"n":1}"#), ("other/a", r#"{"n":1}"#)]));
    assert_eq!(instance.terminate(STOP), 0);
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_stage_without_state_makes_no_changelog_and_opens_no_store() {
    let case = Case::new(RIG, "describe", 1, &["words", "joined"]);
    let state_dir = case.rig.dir().join("state");
    let case = case.arg("--store", "rocksdb").arg("--state-dir", &state_dir.to_string_lossy());
    case.write("words", &[("a", "x")]);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    joined.wait(1);
    assert_eq!(instance.terminate(STOP), 0);
    assert_eq!(case.kafka.partitions(&case.changelog()), 0);
    assert_eq!(case.committed("words").expect("committed").1.changelog, "-");
    let made: Vec<_> = std::fs::read_dir(&state_dir).into_iter().flatten().collect();
    assert!(made.is_empty(), "{made:?}");
}

/// Lets the stage wait at a gate until all records are there, so that they are one batch; gives the changelog.
fn in_one_batch(records: &[(&str, &str)], outputs: usize, written: usize) -> Vec<(String, String)> {
    let case = tally(1).log_fetches();
    // What the keys have before.
    case.write("words", &[("old", "x")]);
    let gate = case.gate("gate");
    let joined = case.observe("joined");
    let mut instance = case.start();
    joined.wait(1);
    case.wait_committed("words", 1);
    case.write("words", &[("gate", &gate.value())]);
    gate.wait_arrived();
    case.write("words", records);
    instance.wait_fetched(case.topic("words"), 0, 1 + records.len() as i64);
    gate.open();
    joined.wait(2 + outputs);
    let stamp = case.wait_committed("words", 2 + records.len() as i64);
    // Start, first record, gate, and all the others.
    assert_eq!(stamp.counter, 4);
    assert_eq!(instance.terminate(STOP), 0);
    let mut changes = changes(&case, 1 + written).split_off(1);
    // Keys have no order among them.
    changes.sort();
    changes
}

#[test]
fn a_batch_writes_one_final_value_for_each_key() {
    let changes = in_one_batch(&[("a", "x"), ("b", "x"), ("a", "x"), ("old", "x"), ("a", "x")], 5, 3);
    assert_eq!(changes, pairs(&[("a", r#"{"n":3}"#), ("b", r#"{"n":1}"#), ("old", r#"{"n":2}"#)]));
}

#[test]
fn unchanged_state_writes_nothing_and_a_delete_one_tombstone() {
    let records = [
        ("old", "same"),
        // Never there, gone before the end of the batch, or made and changed.
        ("none", "delete"),
        ("brief", "x"),
        ("brief", "delete"),
        ("none", "same"),
        ("kept", "x"),
    ];
    assert_eq!(in_one_batch(&records, 2, 1), pairs(&[("kept", r#"{"n":1}"#)]));
    let records = [("old", "x"), ("old", "delete"), ("old", "delete"), ("kept", "x")];
    assert_eq!(in_one_batch(&records, 2, 2), pairs(&[("kept", r#"{"n":1}"#), ("old", "-")]));
}

#[test]
fn unchanged_and_no_entry_refer_to_the_batch_that_is_still_committing() {
    // Each record is a batch, computed while the one before it is on its way and not in the store yet.
    let case = tally(1).arg("--max-poll-records", "1");
    let round = [
        ("a", "x"),
        ("a", "same"),
        ("a", "delete"),
        ("a", "delete"),
        ("a", "x"),
        ("a", "x"),
        ("a", "delete"),
    ];
    let rounds = 20;
    case.write("words", &round.repeat(rounds));
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    let sums: Vec<_> = joined.wait(3 * rounds).iter().map(Seen::value_text).collect();
    assert_eq!(sums, ["1", "1", "2"].repeat(rounds));
    case.wait_committed("words", (round.len() * rounds) as i64);
    assert_eq!(instance.terminate(STOP), 0);
    let one = [("a", r#"{"n":1}"#), ("a", "-"), ("a", r#"{"n":1}"#), ("a", r#"{"n":2}"#), ("a", "-")];
    assert_eq!(changes(&case, one.len() * rounds), pairs(&one.repeat(rounds)));
}

#[test]
fn changelog_records_are_kind_and_key_and_version_and_json() {
    let case = tally(1);
    case.write("words", &[("ä", "x")]);
    let mut instance = case.rig.start();
    case.wait_committed("words", 1);
    let seen = Observer::start(&case.kafka, &case.changelog()).wait(1);
    assert_eq!(seen[0].key.as_deref(), Some(&b"\0\xc3\xa4"[..]));
    assert_eq!(seen[0].value.as_deref(), Some(&b"\x01{\"n\":1}"[..]));
    case.write("words", &[("ä", "delete")]);
    let seen = Observer::start(&case.kafka, &case.changelog()).wait(2);
    assert_eq!((seen[1].key.as_deref(), seen[1].value.as_deref()), (Some(&b"\0\xc3\xa4"[..]), None));
    assert_eq!(instance.terminate(STOP), 0);
}

/// Starts again over a changelog with one more record, which must stop the stage; gives the record's place and the
/// log.
fn refused(key: &[u8], value: &[u8]) -> (String, String) {
    let case = tally(1);
    case.write("words", &[("a", "x")]);
    let mut instance = case.rig.start();
    case.wait_committed("words", 1);
    assert_eq!(instance.terminate(STOP), 0);
    let (key, value) = (Some(key.to_vec()), Some(value.to_vec()));
    case.kafka.write(&case.changelog(), [Write { key, value, partition: Some(0), ..Write::default() }]);
    let offset = Observer::start(&case.kafka, &case.changelog()).wait(2)[1].offset;
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 1);
    assert_eq!(case.committed("words").expect("committed").0, 1);
    (format!("the changelog at {}/0 offset {offset}", case.changelog()), instance.log())
}

#[test]
fn an_unknown_version_of_state_stops_the_stage() {
    let (place, log) = refused(b"\0b", b"\x09{}");
    assert!(log.contains(&format!("{place} holds state of version 9")), "{place} in\n{log}");
}

#[test]
fn an_unknown_kind_of_changelog_record_stops_the_stage() {
    let (place, log) = refused(b"\x07b", b"\x01{}");
    assert!(log.contains(&format!("{place} can't be read")), "{place} in\n{log}");
}
