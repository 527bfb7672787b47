//! Latency under a light load: from a record's creation until a `read_committed` reader has its output.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::cluster::Cluster;
use crate::contestant::Contestant;
use crate::paced::{Paced, Passage, percentile};

/// What half and nearly all of the records stay within.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// The median.
    pub p50: Duration,
    /// 99 of 100.
    pub p99: Duration,
}

/// `rate` records a second over 8 partitions for `time`, after `warm_up`.
pub fn measure(
    cluster: &Cluster,
    contestant: &Contestant,
    rate: u32,
    warm_up: Duration,
    time: Duration,
) -> anyhow::Result<Latency> {
    let run = contestant.prepare_with_input(cluster, 8)?;
    let mut running = run.start()?;
    let mut paced = Paced::start(cluster, &run.input, &run.output, rate)?;
    paced.wait_for_outputs(1, Duration::from_secs(30))?;
    std::thread::sleep(warm_up + time);
    running.alive()?;
    let passages = paced.finish(Duration::from_secs(20))?;
    running.end(Signal::SIGTERM)?;
    run.clean_up()?;

    let end = passages.last().map(|last| last.created);
    let measured = passages.iter().filter(|passage| end.is_some_and(|end| end - passage.created <= time));
    let mut latencies: Vec<Duration> = measured.map(Passage::latency).collect();
    Ok(Latency { p50: percentile(&mut latencies, 0.5), p99: percentile(&mut latencies, 0.99) })
}
