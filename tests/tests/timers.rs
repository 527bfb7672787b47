//! When timers fire, and what of them is stored and comes back (S12).

use std::collections::BTreeSet;

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::probe::ANY_PORT;
use flechtwerk_tests::{Case, Instance, Observer, Probe, STOP, Seen, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

fn plan() -> Case {
    Case::new(RIG, "plan", 1, &["words", "joined"])
}

/// The same with its state on disk.
#[cfg(feature = "rocksdb")]
fn on_disk(case: Case) -> Case {
    let state_dir = case.rig.dir().join("state");
    case.arg("--store", "rocksdb").arg("--state-dir", &state_dir.to_string_lossy())
}

/// Writes a record at a time.
fn write(case: &Case, key: &str, value: &str, timestamp: i64) {
    let record = Write { partition: Some(0), timestamp: Some(timestamp), ..Write::new(key, value) };
    case.kafka.write(case.topic("words"), [record]);
}

fn texts(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(|one| format!("{} {}", one.key_text(), one.value_text())).collect()
}

/// What the outputs are, once there are that many.
#[track_caller]
fn outputs(joined: &Observer, count: usize) -> Vec<String> {
    texts(&joined.wait(count))
}

/// Waits for the end of an instance that fails; its error.
#[track_caller]
fn error(instance: &mut Instance) -> String {
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    let log = instance.log();
    log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default().to_owned()
}

#[test]
fn due_timers_fire_before_a_record_of_their_key_and_behind_one_of_another() {
    let case = plan();
    write(&case, "a", "set x 5000", 1000);
    write(&case, "a", "set y 4000", 1000);
    write(&case, "a", "hello", 5000);
    write(&case, "b", "set z 6000", 5000);
    let joined = case.observe("joined");
    let mut instance = case.start();
    let seen = joined.wait(6);
    let of = |key: &str| texts(&seen.iter().filter(|one| one.key_text() == key).cloned().collect::<Vec<_>>());
    assert_eq!(
        of("a"),
        [
            "a record set x 5000",
            "a record set y 4000",
            "a y fires, 2 records, 1 timers",
            "a x fires, 2 records, 2 timers",
            "a record hello"
        ]
    );
    write(&case, "a", "hello", 6000);
    let seen = joined.wait(8);
    assert_eq!(texts(&seen[6..]), ["a record hello", "b z fires, 1 records, 1 timers"]);
    assert_eq!(seen[7].timestamp, 6000, "what a timer sends has the time that it was set for");
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn cancelled_moved_and_late_timers() {
    let case = plan();
    write(&case, "a", "set x 5000", 1000);
    write(&case, "a", "set gone 5000", 1000);
    write(&case, "a", "set x 7000", 1000);
    write(&case, "a", "cancel gone", 1000);
    write(&case, "b", "tick", 6000);
    // In the past by stream time, not by the record's own.
    write(&case, "a", "late old", 2000);
    write(&case, "b", "tick", 7000);
    let joined = case.observe("joined");
    let mut instance = case.start();
    let seen = outputs(&joined, 9);
    let timers: BTreeSet<_> = seen.iter().filter(|text| text.contains("fires")).cloned().collect();
    let expected = ["a old fires, 5 records, 1 timers", "a x fires, 5 records, 2 timers"];
    assert_eq!(timers, expected.map(str::to_owned).into());
    assert_eq!(instance.terminate(STOP), 0);
}

/// S12.2: batches of their own, with unchanged positions and the next stamp.
#[test]
fn the_wall_clock_needs_no_records() {
    let case = plan();
    write(&case, "a", "wall x 300", 1000);
    let joined = case.observe("joined");
    let mut instance = case.start();
    assert_eq!(outputs(&joined, 2), ["a record wall x 300", "a x fires, 1 records, 1 timers"]);
    let mut stamp = None;
    wait_for("the stamp of the timer's transaction", || {
        stamp = case.committed("words");
        // The first positions, the record, the timer.
        stamp.as_ref().is_some_and(|(_, stamp)| stamp.counter == 3)
    });
    assert_eq!(stamp.map(|(offset, _)| offset), Some(1), "the position is unchanged");
    let sizes = flechtwerk_tests::case::transaction_sizes(&joined.seen());
    assert_eq!(sizes, [1, 1], "a batch of its own");
    assert_eq!(instance.terminate(STOP), 0);
}

/// S2.7, S12.2: one entry of kind 1 for the timers of a key, and the stream time with every transaction.
#[test]
fn timers_and_stream_time_lie_in_the_changelog() {
    let case = plan();
    let changelog = {
        let mut instance = case.start();
        write(&case, "a", "set close 5000", 1000);
        case.wait_committed("words", 1);
        write(&case, "b", "tick", 5000);
        case.wait_committed("words", 2);
        assert_eq!(instance.terminate(STOP), 0);
        Observer::start(&case.kafka, &case.changelog())
    };
    let seen = changelog.wait(7);
    let entry = |one: &Seen| (one.key.clone().unwrap_or_default(), one.value.clone());
    let entries: Vec<_> = seen.iter().map(entry).collect();
    let timers = [&b"\x01\x05close\0"[..], &5000i64.to_be_bytes()].concat();
    assert!(entries.contains(&(b"\x01a".to_vec(), Some(timers))), "{entries:?}");
    assert!(entries.contains(&(b"\x01a".to_vec(), None)), "{entries:?}");
    let times: Vec<_> = entries.iter().filter(|(key, _)| key == b"\x02stream-time").collect();
    let time = |time: i64| Some([&[1][..], &time.to_be_bytes()].concat());
    assert_eq!(times.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), [time(1000), time(5000)]);
}

#[track_caller]
fn comes_back(case: Case) {
    let joined = case.observe("joined");
    let mut instance = case.start();
    write(&case, "a", "set x 5000", 1000);
    write(&case, "a", "wall y 2000", 1000);
    write(&case, "b", "tick", 4000);
    case.wait_committed("words", 3);
    instance.kill();

    let mut instance = case.start();
    assert_eq!(outputs(&joined, 4)[3], "a y fires, 2 records, 1 timers");
    // Late by stream time, which the restart has not turned back.
    write(&case, "c", "set z 3000", 1000);
    assert_eq!(outputs(&joined, 6)[4..], ["c record set z 3000", "c z fires, 1 records, 1 timers"]);
    write(&case, "b", "tick", 5000);
    assert_eq!(outputs(&joined, 8)[6..], ["b record tick", "a x fires, 2 records, 2 timers"]);
    assert_eq!(instance.terminate(STOP), 0);
    // Neither fires again.
    let mut instance = case.start();
    write(&case, "b", "last", 9000);
    assert_eq!(outputs(&joined, 9)[8], "b record last");
    case.wait_committed("words", 6);
    assert_eq!(instance.terminate(STOP), 0);
    assert_eq!(joined.count(), 9);
}

#[test]
fn timers_come_back_after_a_kill_from_the_changelog() {
    comes_back(plan());
}

#[cfg(feature = "rocksdb")]
#[test]
fn timers_come_back_after_a_kill_from_disk() {
    comes_back(on_disk(plan()));
}

/// Many that one record makes due take more than one batch, and fire once each; and before any further record is taken.
#[track_caller]
fn many_at_once(case: Case) {
    const MANY: usize = 12_000;
    /// Records of a batch, and so of a round as well.
    const BATCH: usize = 2_000;
    let case = case.arg("--max-poll-records", &BATCH.to_string());
    let joined = case.observe("joined");
    let record = |n: usize| {
        let value = format!("set x {}", 2000 + n % 100);
        Write { partition: Some(0), timestamp: Some(1000), ..Write::new(&format!("key {n}"), &value) }
    };
    case.kafka.write(case.topic("words"), (0..MANY).map(record));
    let mut instance = case.start();
    joined.wait(MANY);
    // More than can be taken together with the first of them, which makes all timers due.
    let further = |_| Write { partition: Some(0), timestamp: Some(9000), ..Write::new("-", "tick") };
    case.kafka.write(case.topic("words"), (0..2 * BATCH).map(further));
    let all = 2 * MANY + 2 * BATCH;
    let seen = joined.wait(all);
    let fired: BTreeSet<_> =
        seen.iter().filter(|one| one.value_text().starts_with("x fires")).map(Seen::key_text).collect();
    assert_eq!(fired.len(), MANY);
    let last = seen.iter().rposition(|one| one.value_text().starts_with("x fires")).unwrap_or_default();
    let before = seen[..last].iter().filter(|one| one.key_text() == "-").count();
    assert!((1..=BATCH).contains(&before), "{before} further records were taken before the last timer fired");
    case.wait_committed("words", (MANY + 2 * BATCH) as i64);
    assert_eq!(instance.terminate(STOP), 0);
    assert_eq!(joined.count(), all, "each fires once");
}

#[test]
fn many_timers_at_once() {
    many_at_once(plan());
}

#[cfg(feature = "rocksdb")]
#[test]
fn many_timers_at_once_on_disk() {
    many_at_once(on_disk(plan()));
}

/// A timer that fails: nothing of its batch counts, and after a correction it fires.
#[test]
fn a_timer_that_fails_stops_the_process_and_names_itself() {
    for (name, text) in [("fail", "asked for an error"), ("panic", "asked for a panic")] {
        let case = plan();
        let joined = case.observe("joined");
        let mut instance = case.start();
        write(&case, "secret", &format!("set {name} 5000"), 1000);
        joined.wait(1);
        write(&case, "b", "tick", 5000);
        let error = error(&mut instance);
        let place = format!("timer \"{name}\", due at 5000 ms of event time, of partition 0");
        assert!(error.contains(&place) && error.contains(text), "{error}");
        assert!(!error.contains("secret"), "the key is payload: {error}");
        assert_eq!(joined.count(), 1, "nothing of the batch counts");
        assert_eq!(case.committed("words").map(|(offset, _)| offset), Some(1));
    }
}

#[test]
fn timers_that_fire_for_ever_stop_the_process() {
    let case = plan();
    let mut instance = case.start();
    write(&case, "a", "late again", 5000);
    let error = error(&mut instance);
    assert!(error.contains("timer \"again\"") && error.contains("times in a row"), "{error}");
    assert!(error.contains("set them for later than `timers.stream_time()`"), "{error}");
}

#[test]
fn a_timer_that_can_not_be_set_stops_the_process_at_the_record() {
    let case = plan();
    let mut instance = case.start();
    write(&case, "a", "set x 1700000000000000000", 5000);
    let error = error(&mut instance);
    let place = format!("{}/0 offset 0", case.topic("words"));
    assert!(error.contains(&place) && error.contains("after the year 9999"), "{error}");
}

#[test]
fn an_output_of_a_timer_that_is_too_large_names_the_timers() {
    let case = plan();
    let mut instance = case.start();
    write(&case, "a", "late big", 5000);
    let error = error(&mut instance);
    for text in [case.topic("joined"), "made by a timer of partition 0, due at 1 ms", "too large"] {
        assert!(error.contains(text), "{text:?} in {error}");
    }
}

/// S2.7: what no release has written, or a later one, stops the stage where it lies.
#[test]
fn foreign_timers_in_the_changelog_stop_the_stage() {
    let bad: [(&[u8], &[u8], &str); 5] = [
        (
            b"\x01a",
            b"\x02\x01x\0\0\0\0\0\0\0\0\0",
            "holds timers of version 2, but this program knows version 1",
        ),
        (
            b"\x01a",
            b"\x01\x01\xff\0\0\0\0\0\0\0\0\0",
            "holds timers that can't be read: a name is empty, too long, or no UTF-8",
        ),
        (b"\x01a", b"\x01", "holds timers that can't be read"),
        (b"\x02stream-time", b"\x01x", "holds a stream time that can't be read"),
        (b"\x02stream-time", b"\x09\0\0\0\0\0\0\0\0", "holds a stream time of version 9"),
    ];
    for (key, value, text) in bad {
        let case = plan();
        let mut instance = case.start();
        write(&case, "a", "set x 5000", 1000);
        case.wait_committed("words", 1);
        assert_eq!(instance.terminate(STOP), 0);
        let (key, value) = (Some(key.to_vec()), Some(value.to_vec()));
        case.kafka.write(&case.changelog(), [Write { key, value, partition: Some(0), ..Write::default() }]);
        let mut instance = case.rig.start();
        let error = error(&mut instance);
        let place = format!("the changelog at {}/0 offset ", case.changelog());
        assert!(error.contains(&place) && error.contains(text), "{error}");
    }
}

#[test]
fn pending_and_fired_timers_are_metrics() {
    let case = plan().arg(ANY_PORT.0, ANY_PORT.1);
    let mut instance = case.start();
    let probe = Probe::of(&instance);
    let metric = |name: &str| probe.metric(name, "stage=\"plan\"");
    wait_for("the metrics are there", || metric("flechtwerk_timers_fired_total") == Some(0.0));
    for (key, name) in [("a", "x"), ("a", "y"), ("b", "x")] {
        write(&case, key, &format!("set {name} 5000"), 1000);
    }
    wait_for("three pending", || metric("flechtwerk_timers_pending") == Some(3.0));
    write(&case, "c", "tick", 5000);
    wait_for("three fired", || metric("flechtwerk_timers_fired_total") == Some(3.0));
    wait_for("none pending", || metric("flechtwerk_timers_pending") == Some(0.0));
    assert_eq!(instance.terminate(STOP), 0);
}
