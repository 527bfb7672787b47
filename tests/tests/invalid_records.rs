//! Records that do not decode (S8.1): the process stops before a transaction with them begins, says where they lie,
//! and never what they hold.

use std::time::Duration;

use flechtwerk_tests::job::wait_for_tasks;
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Job, Kafka};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(40);
/// Stands in the payloads, and may not stand in any message.
const SECRET: &[u8] = b"\xffhunter2\xfe";

/// Two good records and a bad one, all of one batch: the next commit is not due for an hour.
#[track_caller]
fn stops_at(bad: Write, part: &str) {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2).with(|rig| rig.arg("--commit-interval", "1h"));
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    job.write("words", 1, "hunter2-key", &["hunter2-value", "hunter2-value"]);
    job.kafka.write(job.topic("words"), [Write { partition: Some(1), ..bad }]);
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());

    let log = instance.log();
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    let place = format!("the {part} of the record at {}/1 offset 2", job.topic("words"));
    assert!(error.contains(&place), "{place:?} in:\n{log}");
    assert!(error.contains("stage count") && error.contains("Utf8"), "stage and codec in:\n{log}");
    assert!(!log.contains("hunter2"), "a payload in:\n{log}");
    assert_eq!(job.offsets("words")[&1], 0, "nothing of the batch is committed");
    assert!(flechtwerk_tests::job::read_all(&job.kafka, job.topic("counts")).is_empty());
    assert!(job.state().is_empty());
    assert_eq!(job.kafka.members(&job.group()), 0, "the group is left");
    // Before any transaction: there is not even an aborted one.
    let high = job.kafka.watermarks(job.topic("counts"), 0, "read_uncommitted").1;
    assert_eq!(high, 0, "a transaction has written");

    // A start without a change ends in the same place.
    let mut again = job.rig.start();
    assert_eq!(again.wait(STOP), 1, "log:\n{}", again.log());
    assert!(again.log().contains(&place), "{}", again.log());
}

#[test]
fn undecodable_key() {
    stops_at(Write { key: Some(SECRET.into()), value: Some(b"x".into()), ..Write::default() }, "key");
}

#[test]
fn undecodable_value() {
    stops_at(Write { key: Some(b"a".into()), value: Some(SECRET.into()), ..Write::default() }, "value");
}

#[test]
fn null_key() {
    stops_at(Write { key: None, value: Some(b"hunter2".into()), ..Write::default() }, "key");
}

#[test]
fn null_value() {
    stops_at(Write { key: Some(b"hunter2".into()), value: None, ..Write::default() }, "value");
}

/// Where null is allowed it passes, and empty is not null.
#[test]
fn null_is_a_value_where_the_topic_says_so() {
    let job = Job::new(&Kafka::from_env(), RIG, "copy", 1);
    let bytes = |bytes: &[u8]| Some(bytes.to_vec());
    let records = [(None, None), (bytes(b""), bytes(b"")), (bytes(SECRET), None), (None, bytes(SECRET))];
    let writes =
        records.clone().map(|(key, value)| Write { key, value, partition: Some(0), ..Write::default() });
    job.kafka.write(job.topic("raw"), writes);
    let mut instance = job.rig.start();
    let copies = job.observe().wait(4);
    let copies: Vec<_> = copies.into_iter().map(|copy| (copy.key, copy.value)).collect();
    for record in records {
        assert!(copies.contains(&record), "{record:?} in {copies:?}");
    }
    assert_eq!(instance.terminate(STOP), 0, "a clean stop");
}
