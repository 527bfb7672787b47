//! Instances with ids (S5.2, S11.4): who comes back under an id has its partitions back, and one id is one process.

use std::time::Duration;

use flechtwerk_tests::job::{logged, wait_for_tasks};
use flechtwerk_tests::{Instance, Job, Kafka, Load, wait_for};
use nix::sys::signal::Signal;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(40);

/// Two instances with ids, each with a task.
fn pair(job: &Job) -> [Instance; 2] {
    let instances = ["a", "b"].map(|id| job.rig.clone().arg("--instance-id", id).start());
    instances.iter().for_each(|instance| wait_for_tasks(instance, 1));
    wait_for("both are members", || job.kafka.members(&job.group()) == 2);
    instances
}

/// Log lines about assignments, which no undisturbed instance writes again.
fn assignments(instance: &Instance) -> usize {
    logged(instance, " assigned stage=")
}

/// S5.2c: the older of two processes with one id ends and names the id; the newer one goes on.
#[test]
fn one_instance_id_is_one_process() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2)
        .with(|rig| rig.arg("--instance-id", "twin-7").arg("--commit-interval", "10ms"));
    let load = Load::start(&job.kafka, job.topic("words"), 1000);
    let mut older = job.rig.start();
    wait_for_tasks(&older, 2);
    let output = job.observe();
    output.wait(500);
    let mut newer = job.rig.start();
    assert_eq!(older.wait(STOP), 1, "log:\n{}", older.log());
    let log = older.log();
    let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains("twin-7") && error.contains("--instance-id"), "the id is named in:\n{log}");

    wait_for_tasks(&newer, 2);
    let count = output.count();
    wait_for("the newer process goes on", || output.count() > count + 1000);
    let written = load.finish();
    output.wait(written);
    assert_eq!(newer.terminate(STOP), 0, "a clean stop; log:\n{}", newer.log());
    job.assert_counted(written);
}

/// Killed and started again under its id, an instance has its partitions back without a rebalance of the others.
#[test]
fn killed_instance_comes_back_to_its_partitions() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2).with(|rig| rig.arg("--session-timeout", "30s"));
    let load = Load::start(&job.kafka, job.topic("words"), 1000);
    let [mut killed, mut other] = pair(&job);
    let output = job.observe();
    output.wait(500);
    let before = assignments(&other);
    killed.kill();
    let mut back = job.rig.clone().arg("--instance-id", "a").start();
    wait_for_tasks(&back, 1);
    let written = load.finish();
    output.wait(written);
    assert_eq!(assignments(&other), before, "the other instance hears nothing of it; log:\n{}", other.log());
    for instance in [&mut back, &mut other] {
        assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    }
    job.assert_counted(written);
}

/// S11.4b: a clean stop leaves the group at once, with an id as well as without.
#[test]
fn clean_stop_leaves_the_group() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2).with(|rig| rig.arg("--session-timeout", "5min"));
    let [mut first, mut second] = pair(&job);
    assert_eq!(first.terminate(STOP), 0, "a clean stop");
    assert_eq!(job.kafka.members(&job.group()), 1, "the static member has left");
    wait_for_tasks(&second, 2);
    assert_eq!(second.terminate(STOP), 0, "a clean stop");

    let mut dynamic = job.rig.start();
    wait_for_tasks(&dynamic, 2);
    assert_eq!(dynamic.terminate(STOP), 0, "a clean stop");
    assert_eq!(job.kafka.members(&job.group()), 0, "the group is empty");
}

/// S11.4c: with `--stay-in-group` the others wait for the instance, and it finds what it had.
#[test]
fn stay_in_group_keeps_the_membership() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2)
        .with(|rig| rig.arg("--session-timeout", "60s").flag("--stay-in-group"));
    let [mut first, mut other] = pair(&job);
    job.write("words", 0, "a", &["x"]);
    job.write("words", 1, "b", &["x"]);
    (0..2).for_each(|partition| job.wait_for_offset("words", partition, 1));
    let before = assignments(&other);
    first.signal(Signal::SIGTERM);
    assert_eq!(first.wait(STOP), 0, "a clean stop");
    assert_eq!(job.kafka.members(&job.group()), 2, "it is still a member");

    let mut back = job.rig.clone().arg("--instance-id", "a").start();
    wait_for_tasks(&back, 1);
    assert_eq!(assignments(&other), before, "the other instance hears nothing of it; log:\n{}", other.log());
    for instance in [&mut back, &mut other] {
        assert_eq!(instance.terminate(STOP), 0, "a clean stop");
    }
    job.assert_counted(2);
}
