//! What a stage decides about records that don't decode, against a broker (S8.2, S8.3): it is part of the batch, whatever
//! happens to that.

use std::time::{Duration, Instant};

use flechtwerk_tests::job::{program, read_all};
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, Observer, Probe, STOP, Seen, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

fn judge() -> Case {
    Case::new(RIG, "judge", 1, &["words", "joined", "dead-words"])
}

/// `None` is null.
type Raw<'a> = Option<&'a [u8]>;

fn write(case: &Case, records: &[(Raw<'_>, Raw<'_>)]) {
    let records = records.iter().map(|(key, value)| Write {
        key: key.map(<[u8]>::to_vec),
        value: value.map(<[u8]>::to_vec),
        partition: Some(0),
        timestamp: Some(1_700_000_000_000),
        headers: vec![("trace".into(), b"7".to_vec())],
    });
    case.kafka.write(case.topic("words"), records);
}

fn offsets(dead: &[Seen]) -> Vec<String> {
    dead.iter().map(|one| one.header("flechtwerk.invalid.offset").expect("the offset")).collect()
}

#[test]
fn each_answer_is_carried_out_and_counted() {
    let case = judge().arg("--metrics-listen", "127.0.0.1:0");
    let joined = case.observe("joined");
    let (k, bad) = (Some(&b"k"[..]), Some(&b"\xff\xfe"[..]));
    write(
        &case,
        &[
            (k, Some(b"x")),
            (k, Some(b"\xffskip")),
            (k, Some(b"\xffinstead")),
            (k, bad),
            (k, None),
            (None, Some(b"x")),
            (bad, bad),
            (k, Some(b"x")),
        ],
    );
    let mut instance = case.rig.start();
    let dead = case.observe("dead-words").wait(4);
    let sums: Vec<_> = joined.wait(3).iter().map(Seen::value_text).collect();
    assert_eq!(sums, ["1", "2", "3"]);
    case.wait_committed("words", 8);

    let mut records: Vec<_> = dead.iter().map(|one| (one.key.as_deref(), one.value.as_deref())).collect();
    records.sort();
    let mut expected = vec![(k, bad), (k, None), (None, Some(&b"x"[..])), (bad, bad)];
    expected.sort();
    assert_eq!(records, expected);
    let one = dead.iter().find(|one| one.key.as_deref() == bad).expect("the one without a good key");
    assert_eq!(one.timestamp, 1_700_000_000_000);
    let names: Vec<_> = one.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names[0], names.len()), ("trace", 8));
    for (name, value) in [
        ("trace", "7"),
        ("flechtwerk.invalid.topic", case.topic("words")),
        ("flechtwerk.invalid.partition", "0"),
        ("flechtwerk.invalid.offset", "6"),
        ("flechtwerk.invalid.timestamp", "1700000000000"),
        ("flechtwerk.invalid.part", "key"),
        ("flechtwerk.invalid.error", "not valid UTF-8 (0 bytes of it are)"),
        ("flechtwerk.invalid.stage", "judge"),
    ] {
        assert_eq!(one.header(name).as_deref(), Some(value), "{name}");
    }

    let probe = Probe::of(&instance);
    let counted = |outcome: &str| {
        let labels = format!("topic=\"{}\",outcome=\"{outcome}\"", case.topic("words"));
        probe.metric("flechtwerk_invalid_records_total", &labels)
    };
    wait_for("the counts of a committed batch", || counted("dead_letter") == Some(4.0));
    assert_eq!((counted("skip"), counted("instead"), counted("crash")), (Some(1.0), Some(1.0), Some(0.0)));
    assert_eq!(instance.terminate(STOP), 0);
    assert!(!instance.log().contains("instead\u{fffd}"), "{}", instance.log());
}

#[test]
fn skipped_records_are_committed_without_any_other() {
    let case = judge();
    write(&case, &[(Some(b"k"), Some(b"\xffskip")), (Some(b"k"), Some(b"\xffskip"))]);
    let mut instance = case.rig.start();
    case.wait_committed("words", 2);
    assert_eq!(instance.terminate(STOP), 0);
    assert!(read_all(&case.kafka, case.topic("dead-words")).is_empty());
}

/// Kills an instance while it sends a batch with a dead letter; false if the batch was done before.
fn is_killed_in_mid_transaction() -> bool {
    let case = judge().log_fetches().arg("--max-batch-bytes", "14MiB").arg("--commit-interval", "1ms");
    let gate = case.gate("gate");
    case.write("words", &[("gate", &gate.value())]);
    let mut instance = case.rig.start();
    gate.wait_arrived();
    write(&case, &[(Some(b"a"), Some(b"\xff"))]);
    let keys: Vec<String> = (0..10).map(|n| format!("key {n}")).collect();
    case.write("words", &keys.iter().map(|key| (key.as_str(), "grow:900000")).collect::<Vec<_>>());
    let dead = case.topic("dead-words");
    let uncommitted = Observer::start_with(&case.kafka, dead, "read_uncommitted");
    instance.wait_fetched(case.topic("words"), 0, 11);
    gate.open();
    // Dead letters are sent with the outputs, and then 9 MB of state.
    wait_for("a dead letter that is not committed", || uncommitted.count() >= 1);
    instance.kill();
    let stable = || case.kafka.watermarks(dead, 0, "read_committed").1;
    // A commit that the broker has got takes a moment to be seen.
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        if stable() > 0 {
            return false;
        }
    }
    let mut instance = case.rig.start();
    case.wait_committed("words", 12);
    assert_eq!(instance.terminate(STOP), 0);
    assert_eq!(offsets(&read_all(&case.kafka, dead)), ["1"], "one dead letter, seen with its offset");
    assert!(uncommitted.wait(2).len() == 2, "the first one was there, and is aborted");
    true
}

#[test]
fn a_kill_in_mid_transaction_leaves_no_dead_letter_and_no_second_one() {
    // A kill may come too late; some come in time.
    assert!((0..10).any(|_| is_killed_in_mid_transaction()), "no kill met an open transaction");
}

#[test]
fn a_dead_letter_waits_for_its_batch_and_a_crash_takes_it_along() {
    let case = judge();
    let gate = case.gate("gate");
    let dead = case.topic("dead-words");
    write(&case, &[(Some(b"k"), Some(b"\xff"))]);
    case.write("words", &[("k", &gate.value()), ("k", "fail")]);
    // All of it is one batch: the next commit is not due for an hour.
    let mut instance = case.rig.clone().arg("--commit-interval", "1h").start();
    gate.wait_arrived();
    assert_eq!(case.kafka.watermarks(dead, 0, "read_uncommitted").1, 0, "sent before its batch was done");
    gate.open();
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    assert!(read_all(&case.kafka, dead).is_empty());
    assert_eq!(case.committed("words").expect("the start").0, 0);

    let mut instance = case.rig.clone().env("RIG_CORRECTED", "1").start();
    case.wait_committed("words", 3);
    assert_eq!(instance.terminate(STOP), 0);
    assert_eq!(offsets(&read_all(&case.kafka, dead)), ["0"]);
}

#[test]
fn rounds_that_are_computed_again_give_no_second_dead_letter() {
    // Their sum passes the budget of the round that takes them all; each round that does not count is computed again.
    let case = judge().arg("--max-batch-bytes", "64KiB");
    let large = [&b"\xff"[..], &[b'x'; 5000]].concat();
    let keys: Vec<String> = (0..100).map(|n| format!("key {}", n % 7)).collect();
    let records: Vec<_> = keys.iter().map(|key| (Some(key.as_bytes()), Some(&large[..]))).collect();
    write(&case, &records);
    let mut instance = case.rig.start();
    case.wait_committed("words", 100);
    assert_eq!(instance.terminate(STOP), 0);
    let mut seen: Vec<usize> = offsets(&read_all(&case.kafka, case.topic("dead-words")))
        .iter()
        .map(|offset| offset.parse().expect("a number"))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_missing_dead_letter_topic_is_found_before_the_start_and_made_on_demand() {
    let mut case = Case::new(RIG, "judge", 1, &["words", "joined"]);
    let name = case.kafka.unique("dead-words");
    case.rig = case.rig.topic("dead-words", &name);
    let mut instance = case.rig.start();
    assert_eq!(instance.wait(STOP), 2);
    let log = instance.log();
    assert!(log.contains(&format!("topic `{name}` does not exist")), "{log}");
    assert!(log.contains("dead letters of stage `judge`") && log.contains("topics create"), "{log}");
    let line = log.lines().find(|line| line.contains("topics create")).expect("a command");
    let command =
        line[line.find(RIG).expect("the program's name")..].replace("--partitions N", "--partitions 1");
    let mut words: Vec<_> = command.split_whitespace().skip(1).collect();
    // The mend names topics and cluster; the stage is this test's.
    words.extend(["--stage", "judge"]);
    let output = program(RIG, &words).output().expect("run the mend");
    assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
    write(&case, &[(Some(b"k"), Some(b"\xff"))]);
    let mut instance = case.rig.start();
    assert_eq!(offsets(&Observer::start(&case.kafka, &name).wait(1)), ["0"]);
    assert_eq!(instance.terminate(STOP), 0);
}
