//! Three nodes, of which one is killed: the one that leads what is written, and with it transactions and groups (S6.2).

use std::time::Duration;

use flechtwerk_tests::{Cluster, Job, Load, wait_for, wait_within};

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const STOP: Duration = Duration::from_secs(60);

/// A leader is killed under load, and comes back: all is exact, and no process has stopped.
#[test]
fn leader_is_killed() {
    let cluster = Cluster::start(3);
    let job =
        Job::without_topics(&cluster.kafka, RIG, "count").with(|rig| rig.arg("--commit-interval", "20ms"));
    for topic in ["words", "counts"] {
        cluster.create_topic(job.topic(topic), 4, 3);
    }
    let load = Load::start(&job.kafka, job.topic("words"), 500);
    let mut instances = [job.rig.start(), job.rig.start()];
    let output = job.observe();
    output.wait(500);
    let leader = cluster.leader(job.topic("counts"), 0);
    cluster.node("kill", leader);
    wait_for("another leader", || ![-1, leader].contains(&cluster.leader(job.topic("counts"), 0)));
    let count = output.count();
    wait_within(Duration::from_secs(90), "it goes on without the node", || output.count() > count + 1000);
    cluster.node("restart", leader);
    let count = output.count();
    wait_within(Duration::from_secs(90), "it goes on with the node", || output.count() > count + 500);
    let written = load.finish();
    wait_within(Duration::from_secs(90), "all counts", || output.count() >= written);
    for instance in &mut instances {
        assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
    }
    job.assert_counted(written);
}
