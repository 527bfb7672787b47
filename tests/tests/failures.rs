//! What the broker refuses, and brokers that go away (S6.2): some of it is waited for, the rest stops the process with
//! the place in the message; nothing is lost or doubled by either.

use std::time::Duration;

use flechtwerk_tests::job::{logged, read_all, wait_for_tasks};
use flechtwerk_tests::{Cluster, Job, Kafka, Load, wait_for};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(60);

/// S6.2d: an output that is too large stops the process. The message names topic, place of the input and size; nothing
/// of its batch is committed. `limit`: of the topic, `size`: of the value.
#[track_caller]
fn too_large(limit: &str, size: usize) {
    let job = Job::without_topics(&Kafka::from_env(), RIG, "obey")
        .with(|rig| rig.arg("--commit-interval", "1h"));
    job.kafka.create_topic(job.topic("words"), 2, &[]);
    job.kafka.create_topic(job.topic("joined"), 2, &[("max.message.bytes", limit)]);
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    job.write("words", 1, "a", &["x", "x"]);
    job.write("words", 1, "b", &[&format!("big:{size}")]);
    // The hour passes sooner with a stop: what was computed is committed then.
    wait_for("the records are there", || job.kafka.watermarks(job.topic("words"), 1, "read_uncommitted").1 == 3);
    let status = stop_with_everything(&mut instance, &job);
    assert_eq!(status, 1, "log:\n{}", instance.log());
    let log = instance.log();
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    let place = format!("{}/1 offset 2", job.topic("words"));
    for text in [job.topic("joined"), &place, "too large", "max.message.bytes", "stage obey"] {
        assert!(error.contains(text), "{text:?} in:\n{log}");
    }
    let named = error.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<usize>().ok());
    assert!(named.into_iter().any(|number| (size..size + 200).contains(&number)), "the size in:\n{log}");
    assert_eq!(job.offsets("words")[&1], 0, "nothing of the batch is committed");
    assert!(read_all(&job.kafka, job.topic("joined")).is_empty(), "nothing of the batch can be read");
    assert!(job.state().is_empty());
}

/// Waits until the task has taken everything, and stops the instance; that closes the batch.
#[track_caller]
fn stop_with_everything(instance: &mut flechtwerk_tests::Instance, job: &Job) -> i32 {
    // Only this stage's log line could tell; a second instance's join makes the batch go no sooner either. So the
    // stop is asked for again and again until the record was met: a stop before it commits nothing of it.
    for _ in 0..20 {
        let status = instance.terminate(STOP);
        if status != 0 {
            return status;
        }
        *instance = job.rig.start();
        wait_for_tasks(instance, 2);
    }
    0
}

#[test]
fn output_that_the_broker_finds_too_large() {
    too_large("5000", 20_000);
}

#[test]
fn output_that_the_client_finds_too_large() {
    too_large("10000000", 2_000_000);
}
