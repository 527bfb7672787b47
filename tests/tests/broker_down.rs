//! A broker that goes away (S6.2a): it is waited for, up to `broker_timeout`, and nothing is lost or doubled.

use std::time::Duration;

use flechtwerk_tests::job::logged;
use flechtwerk_tests::{Cluster, Job, Load, wait_for, wait_within};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(60);

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
