//! A later version of a program reads the state that an earlier one has written (S2.7).

use flechtwerk_tests::job::read_all;
use flechtwerk_tests::{Case, Instance, Rig, STOP, Seen};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const LATER: &str = env!("CARGO_BIN_EXE_rig-later");

/// Keys with the counts 1, 2 and, where it is asked for, 3, all written by the first version.
fn written_by_the_first(with_three: bool, store: &str) -> (Case, Rig) {
    let case = Case::new(RIG, "aged", 1, &["words", "joined"]);
    let state_dir = case.rig.dir().join("state");
    let case = case.arg("--store", store).arg("--state-dir", &state_dir.to_string_lossy());
    case.write("words", &[("one", "x"), ("two", "x"), ("two", "x")]);
    if with_three {
        case.write("words", &[("three", "x"), ("three", "x"), ("three", "x")]);
    }
    let mut instance = case.rig.start();
    case.wait_committed("words", if with_three { 6 } else { 3 });
    assert_eq!(instance.terminate(STOP), 0);
    let later = case.rig.clone().program(LATER);
    (case, later)
}

/// The last value of each key in the changelog, sorted.
fn changelog(case: &Case) -> Vec<(String, String)> {
    let mut last = std::collections::BTreeMap::new();
    for Seen { key, value, .. } in read_all(&case.kafka, &case.changelog()) {
        let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.expect("not null")).expect("text");
        last.insert(text(key), text(value));
    }
    last.into_iter().collect()
}

/// Gives the log of the later version, and the first one's instance after it.
fn is_read_by_the_later(store: &str) -> (Case, Instance, String) {
    let (case, later) = written_by_the_first(false, store);
    let joined = case.observe("joined");
    joined.wait(3);
    case.write("words", &[("one", "look"), ("two", "x"), ("new", "x"), ("one", "look")]);
    let mut instance = later.start();
    let mut seen: Vec<_> = joined.wait(7)[3..].iter().map(|one| (one.key_text(), one.value_text())).collect();
    seen.sort();
    let expected = [
        ("new", "2 halves, new"),
        ("one", "2 halves, upgraded"),
        ("one", "2 halves, upgraded"),
        ("two", "6 halves, upgraded"),
    ];
    assert_eq!(seen, expected.map(|(key, text)| (key.to_owned(), text.to_owned())));
    case.wait_committed("words", 7);
    assert_eq!(instance.terminate(STOP), 0);
    // What was only looked at is as it was; what changed is of the new version.
    let expected = [
        ("\0new", "\u{3}{\"halves\":2,\"old\":false}"),
        ("\0one", "\u{1}{\"n\":1}"),
        ("\0two", "\u{3}{\"halves\":6,\"old\":true}"),
    ];
    assert_eq!(changelog(&case), expected.map(|(key, text)| (key.to_owned(), text.to_owned())));
    let log = instance.log();

    // There is no way back: the first version stops at what it does not know, before it reads anything.
    let first = case.rig.clone().arg("--store", "memory").start();
    (case, first, log)
}

#[test]
fn state_of_an_earlier_version_is_restored_and_upgraded_as_it_is_read() {
    let (case, mut first, log) = is_read_by_the_later("memory");
    assert!(log.contains("restored"), "{log}");
    assert_eq!(first.wait(STOP), 1);
    let log = first.log();
    assert!(log.contains("holds state of version 3, but this program knows version 1 of Tally"), "{log}");
    assert!(log.contains(&format!("the changelog at {}/0 offset ", case.changelog())), "{log}");
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_store_on_disk_is_reused_with_the_earlier_versions_in_it() {
    let (case, mut first, log) = is_read_by_the_later("rocksdb");
    assert!(!log.contains("restored"), "nothing had to be restored:\n{log}");
    assert_eq!(first.wait(STOP), 1);
    // Nor has it to be for the first version, which stops at the record that needs the state.
    case.write("words", &[("two", "x")]);
    let mut first = case.rig.start();
    assert_eq!(first.wait(STOP), 1);
    let log = first.log();
    assert!(log.contains("is of version 3, which this program does not know"), "{log}");
    assert!(log.contains("a newer program has written it") && log.contains("`reset`"), "{log}");
}

#[test]
fn an_upgrade_that_fails_stops_the_stage_at_its_record_and_nothing_counts() {
    let (case, later) = written_by_the_first(true, "memory");
    let before = changelog(&case);
    case.write("words", &[("one", "x"), ("three", "look")]);
    // Both are of one batch: the next commit is not due for an hour.
    let mut instance = later.arg("--commit-interval", "1h").start();
    assert_eq!(instance.wait(STOP), 1);
    let log = instance.log();
    let place = format!("the state for the record at {}/0 offset 7", case.topic("words"));
    assert!(log.contains(&place), "{place:?} in\n{log}");
    assert!(log.contains("is of version 1 and can't be upgraded: three can't be upgraded"), "{log}");
    assert_eq!(case.committed("words").expect("the position of the first version").0, 6);
    assert_eq!(changelog(&case), before);
    assert_eq!(read_all(&case.kafka, case.topic("joined")).len(), 6);

    // The program of before still runs, since nothing of another version was written.
    let mut instance = case.rig.start();
    case.wait_committed("words", 8);
    assert_eq!(instance.terminate(STOP), 0);
}
