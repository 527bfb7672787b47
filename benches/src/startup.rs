//! Starting: time to the first output, memory of an idle instance, and what restoring a large state adds.

use std::time::Duration;

use nix::sys::signal::Signal;
use rdkafka::producer::{BaseRecord, Producer as _};

use crate::cluster::Cluster;
use crate::contestant::{Contestant, Run};
use crate::load;

const EVERY: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(120);

/// An instance with 8 tasks and next to no state.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// From the start of the process until each partition's one record was committed.
    pub first_output: Duration,
    /// Bytes resident when nothing has happened for a while.
    pub memory: u64,
}

/// Starts an instance over 8 partitions with one record each.
pub fn idle(cluster: &Cluster, contestant: &Contestant) -> anyhow::Result<Idle> {
    let run = contestant.prepare_with_input(cluster, 8)?;
    one_record_each(cluster, &run)?;
    let progress = cluster.progress(&run.group, &run.input, run.partitions)?;
    progress.committed()?;
    let mut running = run.start()?;
    let reached = progress.wait_for(8, EVERY, LIMIT, || running.alive())?;
    let first_output = reached.at - running.started;
    std::thread::sleep(Duration::from_secs(5));
    running.alive()?;
    let memory = running.memory()?;
    running.end(Signal::SIGTERM)?;
    run.clean_up()?;
    Ok(Idle { first_output, memory })
}

/// CPU time of a whole process that starts over `partitions` partitions with one record each, and ends.
pub fn cpu(cluster: &Cluster, contestant: &Contestant, partitions: i32) -> anyhow::Result<Duration> {
    let run = contestant.prepare_with_input(cluster, partitions)?;
    one_record_each(cluster, &run)?;
    let progress = cluster.progress(&run.group, &run.input, run.partitions)?;
    let mut running = run.start()?;
    progress.wait_for(partitions as u64, EVERY, LIMIT, || running.alive())?;
    let (_, cpu) = running.end(Signal::SIGTERM)?;
    run.clean_up()?;
    Ok(cpu)
}

/// How long `contestant` takes to restore `keys` keys: what its start with them takes longer than without. Read
/// from a changelog of its own making, into a process that has no state yet.
pub fn restore(cluster: &Cluster, contestant: &Contestant, keys: u64) -> anyhow::Result<Restored> {
    let empty = idle(cluster, contestant)?.first_output;
    let run = contestant.prepare_with_input(cluster, 8)?;
    load::each_key(cluster, &run.input, keys)?;
    let progress = cluster.progress(&run.group, &run.input, run.partitions)?;
    let mut running = run.start()?;
    progress.wait_for(keys, Duration::from_millis(50), LIMIT, || running.alive())?;
    running.end(Signal::SIGTERM)?;
    run.forget_state()?;

    one_record_each(cluster, &run)?;
    let mut running = run.start()?;
    let reached = progress.wait_for(keys + 8, EVERY, LIMIT, || running.alive())?;
    let full = reached.at - running.started;
    running.end(Signal::SIGTERM)?;
    // The last start added a record to each partition.
    let bare = crate::loop_::read_bare(&cluster.bootstrap_servers, &run.changelog, run.partitions)?;
    run.clean_up()?;
    Ok(Restored {
        records_per_second: keys as f64
            / full.saturating_sub(empty).max(Duration::from_millis(1)).as_secs_f64(),
        bare_records_per_second: bare.records as f64 / bare.time.as_secs_f64(),
    })
}

/// See [`restore`].
#[derive(Clone, Copy, Debug)]
pub struct Restored {
    /// The contestant's rate.
    pub records_per_second: f64,
    /// The rate of a consumer that reads the same changelog and forgets it.
    pub bare_records_per_second: f64,
}

fn one_record_each(cluster: &Cluster, run: &Run) -> anyhow::Result<()> {
    let producer = load::producer(cluster)?;
    for partition in 0..run.partitions {
        let key = format!("start{partition}");
        let value = "x".repeat(load::RECORD_SIZE - key.len());
        load::send(
            &producer,
            BaseRecord::to(&run.input).partition(partition).key(key.as_str()).payload(value.as_str()),
        )?;
    }
    producer.flush(Duration::from_secs(30))?;
    Ok(())
}
