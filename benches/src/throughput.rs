//! Draining a backlog: records a second and CPU per record.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cluster::Cluster;
use crate::contestant::Contestant;
use crate::verify::verify;

/// How fast a contestant drained its input.
#[derive(Clone, Copy, Debug)]
pub struct Drained {
    /// Between the first and the last commit seen.
    pub records_per_second: f64,
    /// CPU seconds of the whole process per million records.
    pub cpu_per_million: f64,
    /// From the start of the process to the first commit seen.
    pub first_commit: Duration,
}

/// A contestant's run over a topic that was filled before. What it wrote is compared with `expected`, if given.
pub fn drain(
    cluster: &Cluster,
    contestant: &Contestant,
    input: &str,
    records: u64,
    expected: Option<&HashMap<Vec<u8>, Vec<i64>>>,
) -> anyhow::Result<Drained> {
    let run = contestant.prepare(cluster, input)?;
    let progress = cluster.progress(&run.group, input, run.partitions)?;
    progress.committed()?;
    let mut running = run.start()?;
    let (every, limit) = (Duration::from_millis(10), Duration::from_secs(120));
    let first = progress.wait_for(1, every, limit, || running.alive())?;
    let last = progress.wait_for(records, every, limit, || running.alive())?;
    let started: Instant = running.started;
    let (_, cpu) = running.end(Signal::SIGTERM)?;
    if let Some(expected) = expected {
        verify(cluster, expected, &run.output, &run.changelog)?;
    }
    run.clean_up()?;
    Ok(Drained {
        records_per_second: (records - first.sum) as f64 / (last.at - first.at).as_secs_f64(),
        cpu_per_million: cpu.as_secs_f64() * 1e6 / records as f64,
        first_commit: first.at - started,
    })
}
