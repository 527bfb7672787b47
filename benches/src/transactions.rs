//! What a transaction costs by itself: a stage that does nothing, at a light load.

use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;

use crate::cluster::Cluster;
use crate::contestant::Contestant;
use crate::paced::Sending;

/// CPU time per transaction.
#[derive(Clone, Copy, Debug)]
pub struct PerTransaction {
    /// Of all threads that are not the client's own. The calls into the client that these threads make are in it,
    /// so that it is an upper bound.
    pub own: Duration,
    /// Of the whole process.
    pub whole: Duration,
    /// How many transactions were counted.
    pub transactions: u64,
}

/// 1,000 records a second over 8 partitions, into a stage without state and output.
pub fn measure(cluster: &Cluster, contestant: &Contestant, time: Duration) -> anyhow::Result<PerTransaction> {
    let mut run = contestant.prepare_with_input(cluster, 8)?;
    run.stage("nothing");
    let progress = cluster.progress(&run.group, &run.input, run.partitions)?;
    let mut running = run.start()?;
    let sending = Sending::start(cluster, &run.input, 1000)?;
    progress.wait_for(2000, Duration::from_millis(50), Duration::from_secs(30), || running.alive())?;
    let (transactions, threads) = (progress.transactions()?, running.threads()?);
    std::thread::sleep(time);
    let (transactions_after, threads_after) = (progress.transactions()?, running.threads()?);
    sending.finish()?;
    running.end(Signal::SIGTERM)?;
    run.clean_up()?;
    let transactions = transactions_after.saturating_sub(transactions);
    ensure!(transactions > 0, "no transaction was counted");
    let per = |before: Duration, after: Duration| after.saturating_sub(before) / transactions as u32;
    Ok(PerTransaction {
        own: per(threads.own, threads_after.own),
        whole: per(threads.own + threads.client, threads_after.own + threads_after.client),
        transactions,
    })
}
