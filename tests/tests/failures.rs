//! What the broker refuses (S6.2): the process stops with the place in the message, and nothing is lost or doubled.

use std::time::Duration;

use flechtwerk_tests::job::{read_all, wait_for_tasks};
use flechtwerk_tests::{Instance, Job, Kafka};
use nix::sys::signal::Signal;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(60);

/// S6.2d: an output that is too large stops the process. The message names topic, place of the input and size; nothing
/// of its batch is committed. `limit` is the topic's, `size` that of the value.
#[track_caller]
fn too_large(limit: &str, size: usize) {
    let job =
        Job::without_topics(&Kafka::from_env(), RIG, "aloud").with(|rig| rig.arg("--commit-interval", "1h"));
    job.kafka.create_topic(job.topic("words"), 2, &[]);
    job.kafka.create_topic(job.topic("joined"), 2, &[("max.message.bytes", limit)]);
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    // One batch: its commit is not due for an hour, or at a stop.
    let big = format!("big:{size}");
    job.write("words", 1, "a", &["x", "y", &big]);
    instance.wait_for_log(&format!("seen {big}"));
    instance.signal(Signal::SIGTERM);
    names_the_output(&mut instance, &job, size);
    // And without a stop.
    names_the_output(&mut job.rig.clone().arg("--commit-interval", "10ms").start(), &job, size);
}

#[track_caller]
fn names_the_output(instance: &mut Instance, job: &Job, size: usize) {
    assert_eq!(instance.wait(STOP), 1, "log:\n{}", instance.log());
    let log = instance.log();
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    let place = format!("{}/1 offset 2", job.topic("words"));
    for text in [job.topic("joined"), &place, "too large", "max.message.bytes", "stage aloud"] {
        assert!(error.contains(text), "{text:?} in:\n{log}");
    }
    let named = error.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<usize>().ok());
    assert!(named.into_iter().any(|number| (size..size + 200).contains(&number)), "the size in:\n{log}");
    assert_eq!(job.offsets("words")[&1], 0, "nothing of the batch is committed");
    assert!(read_all(&job.kafka, job.topic("joined")).is_empty(), "nothing of the batch can be read");
    assert_eq!(job.kafka.members(&job.group()), 0, "the group is left");
}

#[test]
fn output_that_the_broker_finds_too_large() {
    too_large("5000", 20_000);
}

#[test]
fn output_that_the_client_finds_too_large() {
    too_large("10000000", 2_000_000);
}
