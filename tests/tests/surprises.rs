//! What nobody does on purpose: files spoilt under a running task, a changelog made anew behind its back.

use std::time::Duration;

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, STOP, Seen, wait_for};
use rdkafka::producer::{BaseRecord, Producer};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// A store that can't be read interrupts a round before user code runs; the stall limit (S2.8) must not count from
/// there.
#[test]
fn a_store_that_fails_at_a_look_up_does_not_look_like_a_stall() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let state_dir = case.rig.dir().join("state");
    let case = case
        .arg("--store", "rocksdb")
        .arg("--state-dir", &state_dir.to_string_lossy())
        .arg("--max-batch-time", "2s");
    let joined = case.observe("joined");
    let mut instance = case.start();
    case.write("words", &[("a", "x"), ("b", "x")]);
    joined.wait(2);
    // More than RocksDB reads ahead when it opens a file.
    let many = (0..3000).map(|n| Write { partition: Some(0), ..Write::new(&format!("k{n}"), "grow:1000") });
    case.kafka.write(case.topic("words"), many);
    case.wait_committed("words", 3002);
    assert_eq!(instance.terminate(STOP), 0);
    let mut instance = case.start();
    for entry in std::fs::read_dir(state_dir.join(case.application_id()).join("0")).expect("the database") {
        let path = entry.expect("a file").path();
        let length = std::fs::metadata(&path).expect("a file").len() as usize;
        std::fs::write(&path, vec![0x5a; length.max(64)]).expect("overwrite");
    }
    // The restore is held back for longer than the limit: the line is repeated every ten seconds.
    let foreign = case.kafka.open_transaction(&case.kafka.unique("foreign"));
    let changelog = case.changelog();
    let record =
        BaseRecord::to(&changelog).partition(0).key(&[0u8, b'z'][..]).payload(&[1u8, b'{', b'}'][..]);
    foreign.send(record).map_err(|(error, _)| error).expect("send");
    foreign.flush(STOP).expect("flush");
    case.write("words", &[("a", "x")]);
    instance.wait_for_log("the store failed and is wiped and restored");
    wait_for("the restore waits", || instance.log().matches("holds the changelog back").count() >= 2);
    foreign.abort_transaction(STOP).expect("abort");
    let seen = joined.wait(3);
    assert_eq!(seen[2].value_text(), "2");
    assert_eq!(instance.terminate(STOP), 0, "{}", instance.log());
}

/// A changelog that is deleted and made anew while instances run is empty: a task that moves must not restore from it
/// as if nothing were missing (S7.3).
#[test]
fn a_changelog_made_anew_while_running_loses_no_state_silently() {
    let case = Case::new(RIG, "tally", 2, &["words", "joined"]);
    let joined = case.observe("joined");
    let mut first = case.start();
    let on = |partition| Write { partition: Some(partition), ..Write::new("a", "x") };
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    joined.wait(2);
    let mut second = case.start();
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    joined.wait(4);
    for partition in 0..2 {
        wait_for("all is committed", || case.committed_of("words", partition).is_some_and(|(at, _)| at == 2));
    }
    case.kafka.delete_topic(&case.changelog());
    case.kafka.create_topic(&case.changelog(), 2, &[("cleanup.policy", "compact")]);
    // Its task goes to the first one, which has to restore it.
    assert_eq!(second.terminate(STOP), 0, "{}", second.log());
    assert_eq!(first.wait(STOP), 1);
    assert!(first.log().contains("made anew") && first.log().contains("`reset`"), "{}", first.log());
    let ones = joined.seen().iter().map(Seen::value_text).filter(|value| value == "1").count();
    assert_eq!(ones, 2, "a count has begun anew");
}

/// Somebody deletes a topic under the running process: after `--broker-timeout` it stops, and names the topic.
#[test]
fn deleted_topics_stop_the_process_naming_them() {
    for which in ["input", "output", "changelog"] {
        let case = Case::new(RIG, "tally", 1, &["words", "joined"]).arg("--broker-timeout", "3s");
        let joined = case.observe("joined");
        let mut instance = case.start();
        case.write("words", &[("a", "x")]);
        joined.wait(1);
        let topic = match which {
            "input" => case.topic("words").to_owned(),
            "output" => case.topic("joined").to_owned(),
            _ => case.changelog(),
        };
        case.kafka.delete_topic(&topic);
        if which != "input" {
            case.write("words", &[("a", "x")]);
        }
        assert_eq!(instance.wait(Duration::from_secs(120)), 1, "{which}: {}", instance.log());
        let log = instance.log();
        let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(error.contains(&topic) && error.contains("somebody has deleted it"), "{which}: {log}");
    }
}
