//! When a batch closes, and in which order its records are processed (S2.4).

use std::collections::BTreeMap;
use std::time::Instant;

use flechtwerk_tests::case::transaction_sizes;
use flechtwerk_tests::kafka::{Write, send};
use flechtwerk_tests::{Case, Instance, Observer, STOP, Seen, wait_for};
use rdkafka::producer::Producer;

const RIG: &str = env!("CARGO_BIN_EXE_rig");

/// Lets the stage wait at a gate until all of `records` are fetched; gives what it wrote then, the gate's record
/// first.
fn processed_together(case: &Case, records: &[(&str, &str)], outputs: usize) -> (Vec<Seen>, Instance) {
    let gate = case.gate("gate");
    let joined = case.observe("joined");
    case.write("words", &[("gate", &gate.value())]);
    let instance = case.rig.start();
    gate.wait_arrived();
    case.write("words", records);
    instance.wait_fetched(case.topic("words"), 0, records.len() as i64);
    gate.open();
    let seen = joined.wait(outputs + 1);
    case.wait_committed("words", records.len() as i64 + 1);
    (seen, instance)
}

#[test]
fn a_batch_closes_at_max_poll_records() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]).arg("--max-poll-records", "7").log_fetches();
    let (seen, mut instance) = processed_together(&case, &[("a", "x"); 70], 70);
    let sizes = transaction_sizes(&seen);
    assert_eq!(sizes.iter().sum::<usize>(), 71);
    assert_eq!(sizes.iter().max(), Some(&7), "{sizes:?}");
    // The gate's record is the eleventh batch; each other one is full.
    assert_eq!(sizes.len(), 11, "{sizes:?}");
    // One commit is that of the start.
    assert_eq!(case.wait_committed("words", 71).counter, 12);
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_batch_closes_at_max_batch_bytes_of_its_outputs() {
    let case = Case::new(RIG, "obey", 1, &["words", "joined"]).arg("--max-batch-bytes", "10000");
    case.write("words", &[("a", "big:3000"); 40]);
    // This one alone is more than a batch may hold.
    case.write("words", &[("a", "big:25000")]);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    let seen = joined.wait(41);
    let sizes = transaction_sizes(&seen);
    assert!(
        sizes.iter().all(|size| *size <= 4),
        "four are the first to be more than 10,000 bytes: {sizes:?}"
    );
    assert!(sizes.iter().any(|size| *size > 1), "no batch has more than one record: {sizes:?}");
    assert_eq!(seen[40].value.as_ref().map(Vec::len), Some(25_000));
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_batch_closes_at_max_batch_bytes_of_its_state() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]).arg("--max-batch-bytes", "10000");
    let keys: Vec<String> = (0..40).map(|n| format!("key {n}")).collect();
    case.write("words", &keys.iter().map(|key| (key.as_str(), "grow:3000")).collect::<Vec<_>>());
    let mut instance = case.rig.start();
    case.wait_committed("words", 40);
    let sizes = transaction_sizes(&Observer::start(&case.kafka, &case.changelog()).wait(40));
    assert!(
        sizes.iter().all(|size| *size <= 4),
        "four are the first to be more than 10,000 bytes: {sizes:?}"
    );
    assert!(sizes.iter().any(|size| *size > 1), "no batch has more than one record: {sizes:?}");
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn a_batch_closes_at_max_batch_bytes_of_its_inputs() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]).arg("--max-batch-bytes", "10000");
    let value = format!("x:{}", "y".repeat(3000));
    case.write("words", &[("a", value.as_str()); 40]);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    let sizes = transaction_sizes(&joined.wait(40));
    assert!(
        sizes.iter().all(|size| *size <= 4),
        "four are the first to be more than 10,000 bytes: {sizes:?}"
    );
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn under_load_there_is_one_commit_for_each_commit_interval() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]).arg("--commit-interval", "400ms");
    let joined = case.observe("joined");
    let mut instance = case.start();
    let producer = case.kafka.producer();
    let began = Instant::now();
    for n in 1..=150 {
        // Each comes after the one before is in the topic, so that they are spread over time.
        send(&producer, case.topic("words"), &Write::new("a", "x"));
        producer.flush(STOP).expect("flush");
        if n % 50 == 0 {
            joined.wait(n);
        }
    }
    let counter = case.wait_committed("words", 150).counter;
    // Commits are counted from start to start; a slow machine makes the time longer and so the bound larger.
    let most = began.elapsed().as_millis() as u64 / 400 + 4;
    assert!(counter <= most, "{counter} commits");
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn after_a_quiet_it_commits_at_once_and_user_code_never_waits_for_a_commit() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    // The first start commits its position, which is a commit like any other.
    assert_eq!(case.start().terminate(STOP), 0);
    let before = case.committed("words").expect("the first position").1.counter;

    let case = case.arg("--commit-interval", "1h");
    let joined = case.observe("joined");
    let mut instance = case.start();
    case.write("words", &[("a", "x")]);
    joined.wait(1);
    // The next commit may come in an hour: what the function does is seen before.
    let traces = case.rig.dir().join("traces");
    let value = format!("trace:{}", traces.display());
    for n in 1..=5 {
        case.write("words", &[("a", &value)]);
        wait_for("the function has run", || std::fs::read(&traces).is_ok_and(|bytes| bytes.len() == n));
    }
    assert_eq!(joined.count(), 1);
    // A clean stop commits what is there.
    assert_eq!(instance.terminate(STOP), 0);
    joined.wait(6);
    assert_eq!(case.committed("words").expect("committed").1.counter, before + 2);
}

/// Fills both inputs while the stage waits at a gate, and gives the values it wrote after it, for each key in order.
fn merged(case: &Case, profiles: &[Write], words: &[Write]) -> BTreeMap<String, Vec<String>> {
    let gate = case.gate("gate");
    let joined = case.observe("joined");
    case.write("words", &[("gate", &gate.value())]);
    let mut instance = case.rig.start();
    gate.wait_arrived();
    let in_place = |record: &Write| Write { partition: Some(0), ..record.clone() };
    case.kafka.write(case.topic("profiles"), profiles.iter().map(in_place));
    case.kafka.write(case.topic("words"), words.iter().map(in_place));
    instance.wait_fetched(case.topic("profiles"), 0, profiles.len() as i64 - 1);
    instance.wait_fetched(case.topic("words"), 0, words.len() as i64);
    gate.open();
    let seen = joined.wait(profiles.len() + words.len());
    assert_eq!(instance.terminate(STOP), 0);
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    seen.iter().for_each(|one| values.entry(one.key_text()).or_default().push(one.value_text()));
    values
}

fn at(key: &str, value: &str, time: i64) -> Write {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("the time");
    let today = now.as_secs() as i64 / 86_400 * 86_400_000;
    Write { timestamp: Some(today + time), ..Write::new(key, value) }
}

#[test]
fn within_a_bucket_the_order_is_that_of_inputs_and_then_of_offsets() {
    let case = Case::new(RIG, "merge", 1, &["profiles", "words", "joined"]).log_fetches();
    let words = [at("a", "1", 10), at("b", "1", 10), at("a", "2", 20), at("b", "2", 20)];
    let profiles = [at("a", "1", 90), at("b", "1", 90), at("a", "2", 5), at("b", "2", 5)];
    let values = merged(&case, &profiles, &words);
    assert_eq!(values["a"], ["p1", "p2", "w1", "w2"]);
    assert_eq!(values["b"], ["p1", "p2", "w1", "w2"]);
}

#[test]
fn with_order_timestamp_the_smallest_comes_first_and_ties_follow_inputs() {
    let case = Case::new(RIG, "merge_by_time", 1, &["profiles", "words", "joined"]).log_fetches();
    let words = [at("a", "1", 10), at("a", "2", 30), at("a", "3", 5), at("a", "4", 40)];
    let profiles = [at("a", "1", 20), at("a", "2", 30), at("a", "3", 35)];
    let values = merged(&case, &profiles, &words);
    // The third word is younger than its place in the topic says: offsets come first.
    assert_eq!(values["a"], ["w1", "p1", "p2", "w2", "w3", "p3", "w4"]);
}

/// S2.4k: what one round takes makes more than a batch has room for, and is done in parts.
#[test]
fn with_order_timestamp_a_round_that_is_too_large_is_done_in_that_order() {
    let case = Case::new(RIG, "merge_by_time", 1, &["profiles", "words", "joined"])
        .arg("--max-batch-bytes", "17000")
        .log_fetches();
    // Sixteen fit into one batch, but not with their outputs.
    let large = |number: i64| format!("{number}:{}", "x".repeat(1_000));
    let profiles: Vec<Write> = (0..8).map(|n| at("a", &large(n), 20 * n)).collect();
    let words: Vec<Write> = (0..8).map(|n| at("a", &large(n), 20 * n - 10)).collect();
    let values = merged(&case, &profiles, &words).remove("a").expect("outputs of a");
    let values: Vec<&str> = values.iter().filter_map(|value| Some(value.split_once(':')?.0)).collect();
    let expected: Vec<String> = (0..8).flat_map(|n| [format!("w{n}"), format!("p{n}")]).collect();
    assert_eq!(values, expected);
}

#[test]
fn a_full_input_does_not_starve_the_other() {
    let case = Case::new(RIG, "merge", 1, &["profiles", "words", "joined"])
        .arg("--max-poll-records", "10")
        .log_fetches();
    let profiles: Vec<Write> = (0..500).map(|n| at("a", &n.to_string(), n)).collect();
    let words: Vec<Write> = (0..5).map(|n| at("a", &n.to_string(), n)).collect();
    let values = merged(&case, &profiles, &words).remove("a").expect("outputs of a");
    let last = values.iter().rposition(|value| value.starts_with('w')).expect("a word");
    assert!(last < 20, "the last of 5 words is number {last} of {}", values.len());
}
