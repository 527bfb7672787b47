//! What the broker refuses, and brokers that go away (S6.2): some of it is waited for, the rest stops the process with
//! the place in the message; nothing is lost or doubled by either.

use std::time::Duration;

use flechtwerk_tests::job::{logged, read_all, wait_for_tasks};
use flechtwerk_tests::{Cluster, Instance, Job, Kafka, Load, wait_for, wait_within};
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

/// S6.2a: a broker that pauses past the session, or crashes and comes back, is waited for, and all goes on exactly. One
/// that stays away longer than `--broker-timeout` stops the process with status 1; the next start goes on exactly.
#[test]
fn broker_goes_away() {
    let cluster = Cluster::start(1);
    let job = Job::new(&cluster.kafka, RIG, "count", 4).with(|rig| rig.arg("--commit-interval", "10ms"));
    let load = Load::start(&job.kafka, job.topic("words"), 500);
    let mut instance = job.rig.start();
    let output = job.observe();
    output.wait(500);

    cluster.node("pause", 1);
    instance.wait_for_log("session timed out");
    cluster.node("resume", 1);
    let count = output.count();
    wait_for("it goes on after a pause", || output.count() > count + 500);
    assert!(instance.try_wait().is_none(), "the process lived through it");
    assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());

    let mut impatient = job.rig.clone().arg("--broker-timeout", "3s").start();
    let count = output.count();
    wait_for("it works", || output.count() > count + 500);
    cluster.node("pause", 1);
    assert_eq!(impatient.wait(STOP), 1, "log:\n{}", impatient.log());
    assert_eq!(logged(&impatient, "\nerror: stage count: "), 1, "{}", impatient.log());
    cluster.node("resume", 1);

    let mut last = job.rig.start();
    let written = load.finish();
    wait_within(Duration::from_secs(90), "all counts", || output.count() >= written);

    // Without a transaction on its way: a broker without replicas that crashes while one ends may never end it.
    cluster.node("kill", 1);
    cluster.node("restart", 1);
    let load = Load::start(&job.kafka, job.topic("words"), 500);
    wait_for("it goes on after a crash", || output.count() > written + 500);
    let written = written + load.finish();
    wait_within(Duration::from_secs(90), "all counts", || output.count() >= written);
    assert!(last.try_wait().is_none(), "the process lived through it");
    assert_eq!(last.terminate(STOP), 0, "a clean stop; log:\n{}", last.log());
    job.assert_counted(written);
}
