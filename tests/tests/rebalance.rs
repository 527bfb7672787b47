//! What a rebalance does to tasks, their batches and their records (S5): seen from outside, under load.

use std::time::Duration;

use flechtwerk_tests::job::{logged, wait_for_assignment, wait_for_tasks};
use flechtwerk_tests::probe::ANY_PORT;
use flechtwerk_tests::{Case, Instance, Job, Kafka, Load, Probe, wait_for, wait_within};
use nix::sys::signal::Signal;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(40);

/// The log line of a task that begins to run.
fn runs(task: u32) -> String {
    format!("task is running stage=\"count\" partition={task}\n")
}

/// S5.1: tasks that stay go on, those that leave end, and they come back when the other instance has gone.
#[test]
fn survives_eager_rebalance() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 4).with(|rig| rig.arg(ANY_PORT.0, ANY_PORT.1));
    let load = Load::start(&job.kafka, job.topic("words"), 2000);
    let mut first = job.rig.start();
    wait_for_tasks(&first, 4);
    let probe = Probe::of(&first);
    let output = job.observe();

    let mut second = job.rig.start();
    wait_for_tasks(&second, 2);
    wait_for("the tasks that left have ended", || probe.tasks("count") == (2, 2));
    // Members have random ids: either half may have stayed.
    let gone: Vec<u32> = (0..4).filter(|task| logged(&second, &runs(*task)) > 0).collect();
    assert!(gone == [0, 1] || gone == [2, 3], "the second instance has {gone:?}");
    let count = output.count();
    wait_for("the tasks go on", || output.count() > count + 1000);

    assert_eq!(second.terminate(STOP), 0, "a clean stop");
    wait_for("all tasks are back", || probe.tasks("count") == (4, 4));
    let written = load.finish();
    output.wait(written);
    for task in 0..4 {
        let starts = if gone.contains(&task) { 2 } else { 1 };
        assert_eq!(logged(&first, &runs(task)), starts, "starts of task {task}; log:\n{}", first.log());
    }
    assert_eq!(first.terminate(STOP), 0, "a clean stop");
    job.assert_counted(written);
}

/// S5.1d: an instance that was stopped past its session has lost its tasks, and what it had under way counts for
/// nothing; it comes back as a new member.
#[test]
fn lost_session_ends_its_tasks() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2).with(|rig| rig.arg("--commit-interval", "10ms"));
    let load = Load::start(&job.kafka, job.topic("words"), 2000);
    let (mut zombie, mut other) = (job.rig.start(), job.rig.start());
    wait_for_tasks(&zombie, 1);
    wait_for_tasks(&other, 1);
    let output = job.observe();
    output.wait(1000);

    let skip = other.log().len();
    zombie.signal(Signal::SIGSTOP);
    wait_for_assignment(&other, skip, "0, 1");
    let at = output.count();
    wait_for("the other instance does all the work", || output.count() > at + 2000);
    zombie.signal(Signal::SIGCONT);

    zombie.wait_for_log("the session expired");
    let runs = logged(&zombie, "task is running");
    wait_for("it is a member again, with a task", || logged(&zombie, "task is running") > runs);
    assert_eq!(job.kafka.members(&job.group()), 2);
    let written = load.finish();
    output.wait(written);
    for instance in [&mut zombie, &mut other] {
        assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
    }
    job.assert_counted(written);
}

/// S5.2: what the group refuses because it is of an old generation is sent again, and nothing is computed twice.
#[test]
fn refused_batches_are_sent_again() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 4)
        .with(|rig| rig.arg("--commit-interval", "1ms").arg("--heartbeat-interval", "200ms"));
    let load = Load::start(&job.kafka, job.topic("words"), 2000);
    let mut steady = [job.rig.start(), job.rig.start()];
    let output = job.observe();
    output.wait(1000);

    let refused = |instances: &[Instance]| -> usize {
        instances.iter().map(|instance| logged(instance, "a transaction was aborted: Generation")).sum()
    };
    let mut joins = 0;
    wait_within(Duration::from_secs(90), "batches that were refused", || {
        let mut guest = job.rig.start();
        wait_for_tasks(&guest, 1);
        assert_eq!(guest.terminate(STOP), 0, "a clean stop");
        joins += 1;
        joins >= 4 && refused(&steady) >= 2
    });
    let written = load.finish();
    output.wait(written);
    for instance in &mut steady {
        assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
    }
    job.assert_counted(written);
}

/// S5.5: an instance too many is a member without tasks, ready, and takes over when it is needed.
#[test]
fn spare_takes_over() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 1).with(|rig| rig.arg(ANY_PORT.0, ANY_PORT.1));
    let mut working = job.rig.start();
    wait_for_tasks(&working, 1);
    let mut spare = job.rig.start();
    wait_for("both are members", || job.kafka.members(&job.group()) == 2);
    let probes = [Probe::of(&working), Probe::of(&spare)];
    wait_for("one of them has no task, and is ready", || {
        let mut tasks = probes.each_ref().map(|probe| probe.tasks("count"));
        tasks.sort();
        tasks == [(0, 0), (1, 1)] && probes.iter().all(|probe| probe.status("/ready") == 200)
    });
    job.write("words", 0, "a", &["x", "x"]);
    job.wait_for_offset("words", 0, 2);

    // Members have random ids, and so either may have the partition.
    if probes[0].tasks("count") == (0, 0) {
        std::mem::swap(&mut working, &mut spare);
    }
    let runs = logged(&spare, "task is running");
    working.kill();
    wait_for("the spare takes over", || logged(&spare, "task is running") > runs);
    job.write("words", 0, "a", &["x"]);
    job.wait_for_offset("words", 0, 3);
    assert_eq!(spare.terminate(STOP), 0, "a clean stop");
    job.assert_counted(3);
}

/// S5.5: partitions added to an input while the stage runs stop it, before it fences or reads anything of them.
#[test]
fn added_partitions_stop_the_stage() {
    let job = Job::new(&Kafka::from_env(), RIG, "count", 2)
        .with(|rig| rig.arg("-X", "topic.metadata.refresh.interval.ms=500"));
    let mut instance = job.rig.start();
    wait_for_tasks(&instance, 2);
    job.write("words", 0, "a", &["x"]);
    job.wait_for_offset("words", 0, 1);
    job.kafka.add_partitions(job.topic("words"), 3);
    assert_eq!(instance.wait(Duration::from_secs(60)), 1, "log:\n{}", instance.log());
    let log = instance.log();
    for text in ["partition 2", &job.changelog(), "which has 2", "migration", "`reset`"] {
        assert!(log.contains(text), "{text:?} in:\n{log}");
    }
    assert_eq!(logged(&instance, "task is running"), 2, "no task of the new partition; log:\n{log}");
    assert_eq!(job.committed("words").keys().copied().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(job.kafka.partitions(&job.changelog()), 2);

    // Nor does it start again; now it is the startup check that says so.
    let (status, _, stderr) = job.rig.run(&["run"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("needs a state migration") && stderr.contains("has 2 partitions"), "{stderr}");
}

/// S5.5c: partitions that are added to one of several inputs leave tasks without the others, be there state or none. The error
/// says so, and not that somebody subscribes to other topics.
#[test]
fn partitions_added_to_one_of_two_inputs_stop_the_stage() {
    let started = ["join", "merge"].map(|stage| {
        let case = Case::new(RIG, stage, 2, &["profiles", "words", "joined"])
            .arg("-X", "topic.metadata.refresh.interval.ms=500");
        let instance = case.rig.start();
        wait_for_tasks(&instance, 2);
        case.kafka.add_partitions(case.topic("words"), 3);
        (case, instance)
    });
    for (case, mut instance) in started {
        instance.wait_for_log("the task does not start");
        assert_eq!(instance.wait(Duration::from_secs(120)), 1, "log:\n{}", instance.log());
        let log = instance.log();
        let error = log.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        let (profiles, words) = (case.topic("profiles"), case.topic("words"));
        let counts = format!("`{profiles}` has 2, `{words}` has 3");
        for text in ["partition 2 is not assigned for every input", &counts, "the same number", "`check`"] {
            assert!(error.contains(text), "{text:?} in:\n{log}");
        }
        assert!(!error.contains("subscri"), "{log}");
        let (status, _, stderr) = case.rig.run(&["check"]);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains("the inputs differ in their number of partitions"), "{stderr}");
    }
}
