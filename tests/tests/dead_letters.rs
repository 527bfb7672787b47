//! What a stage decides about records that don't decode, against a broker (S8.2, S8.3): it is part of the batch, whatever
//! happens to that.

use std::time::Duration;

use flechtwerk_tests::job::{program, read_all};
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, Instance, Observer, Probe, STOP, Seen, wait_for};
use nix::sys::signal::Signal;
use rand::Rng;

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

/// The same, sorted.
fn numbers(dead: &[Seen]) -> Vec<usize> {
    let mut numbers: Vec<usize> =
        offsets(dead).iter().map(|offset| offset.parse().expect("a number")).collect();
    numbers.sort_unstable();
    numbers
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
    let line = format!("records did not decode, the first at {}/0 offset 1;", case.topic("words"));
    assert!(instance.log().contains(&line), "{line:?} in\n{}", instance.log());
}

/// S8.3a: not when it is decided. The batch waits for its third record, since the next commit is due in an hour.
#[test]
fn what_was_decided_counts_once_it_is_committed() {
    let case = judge()
        .arg("--metrics-listen", "127.0.0.1:0")
        .arg("--commit-interval", "1h")
        .arg("--max-poll-records", "3");
    let mut instance = case.start();
    let probe = Probe::of(&instance);
    let counted = |outcome: &str| {
        let labels = format!("topic=\"{}\",outcome=\"{outcome}\"", case.topic("words"));
        probe.metric("flechtwerk_invalid_records_total", &labels)
    };
    let (k, bad) = (Some(&b"k"[..]), Some(&b"\xff"[..]));
    write(&case, &[(k, Some(b"\xffskip"))]);
    instance.wait_for_log("judged 0");
    write(&case, &[(k, bad)]);
    instance.wait_for_log("judged 1");
    // The round of the first one has ended by now.
    assert_eq!((counted("skip"), counted("dead_letter")), (Some(0.0), Some(0.0)));
    write(&case, &[(k, Some(b"\xffinstead"))]);
    case.wait_committed("words", 3);
    wait_for("the counts of a committed batch", || counted("instead") == Some(1.0));
    assert_eq!(
        (counted("skip"), counted("dead_letter"), counted("crash")),
        (Some(1.0), Some(1.0), Some(0.0))
    );
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
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

/// Kills an instance while it has a transaction open with a dead letter in it.
fn kill_in_mid_transaction(case: &Case, instance: &mut Instance) {
    let dead = case.topic("dead-words");
    let ends = || {
        let stable = case.kafka.watermarks(dead, 0, "read_committed").1;
        (stable, case.kafka.watermarks(dead, 0, "read_uncommitted").1)
    };
    let mut random = rand::rng();
    wait_for("a dead letter that is not committed", || {
        assert!(instance.try_wait().is_none(), "log:\n{}", instance.log());
        std::thread::sleep(Duration::from_millis(random.random_range(1..20)));
        instance.signal(Signal::SIGSTOP);
        // What stands still is open; a commit that the broker has got is over in a moment.
        let before = ends();
        let is_open = before.0 < before.1 && {
            std::thread::sleep(Duration::from_millis(300));
            ends() == before
        };
        if !is_open {
            instance.signal(Signal::SIGCONT);
        }
        is_open
    });
    instance.kill();
}

#[test]
fn a_kill_in_mid_transaction_leaves_no_dead_letter_and_no_second_one() {
    const RECORDS: usize = 6000;
    let case = judge().arg("--max-poll-records", "10").arg("--commit-interval", "1ms");
    let (dead, joined) = (case.topic("dead-words"), case.topic("joined"));
    let keys: Vec<String> = (0..RECORDS).map(|n| format!("key {}", n % 7)).collect();
    let value = |n: usize| Some(if n.is_multiple_of(3) { &b"\xff"[..] } else { b"x" });
    write(
        &case,
        &keys.iter().enumerate().map(|(n, key)| (Some(key.as_bytes()), value(n))).collect::<Vec<_>>(),
    );
    for _ in 0..3 {
        let mut instance = case.rig.start();
        kill_in_mid_transaction(&case, &mut instance);
    }
    let mut instance = case.rig.start();
    case.wait_committed("words", RECORDS as i64);
    assert_eq!(instance.terminate(STOP), 0);

    let seen = numbers(&read_all(&case.kafka, dead));
    assert_eq!(seen, (0..RECORDS).step_by(3).collect::<Vec<_>>(), "each dead letter once");
    assert_eq!(read_all(&case.kafka, joined).len(), RECORDS - seen.len());
    // Those of the killed transactions lie there, and nobody sees them.
    Observer::start_with(&case.kafka, dead, "read_uncommitted").wait(seen.len() + 3);
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
    let seen = numbers(&read_all(&case.kafka, case.topic("dead-words")));
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
