//! Kills an instance while its transaction is open, and makes sure that it was.
//!
//! From outside an open transaction is seen by a partition's two ends: records lie behind the stable one. The instance
//! is frozen first, so that nothing changes between looking and killing, and so that the transactions of the other
//! instance end: one that stays open is that of the frozen one.

use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::{Cluster, Ends};

/// How long to look for an open transaction.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the instance is frozen before what is open is believed to be its own: the transactions of the other instance, and those
/// whose end was under way, are over by then. Far less than a session time-out.
const FROZEN: Duration = Duration::from_secs(1);
/// The same for a first opinion.
const GLANCE: Duration = Duration::from_millis(60);

/// The transaction that was open at the kill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenTransaction {
    pub(crate) partition: i32,
    /// Records of it in the partition.
    pub(crate) records: i64,
}

/// Ends the process by SIGKILL; blocks until it is done.
pub(crate) fn kill_in_transaction(
    pid: Pid,
    cluster: &Cluster,
    topic: &str,
    partitions: &[i32],
) -> anyhow::Result<OpenTransaction> {
    let send = |signal| kill(pid, signal).with_context(|| format!("sending {signal} to process {pid}"));
    let start = Instant::now();
    let mut frozen = 0_u32;
    while start.elapsed() < LIMIT {
        // A transaction is open for a millisecond on a fast machine, over before it could be seen and frozen. So the moments are
        // taken blindly, many of them, and out of step with the instance's commits.
        std::thread::sleep(Duration::from_millis(u64::from(3 + frozen * 7 % 11)));
        send(Signal::SIGSTOP)?;
        frozen += 1;
        let mut open = open_transactions(cluster, topic, partitions)?;
        for pause in [GLANCE, FROZEN] {
            if open.is_empty() {
                break;
            }
            std::thread::sleep(pause);
            let still = open_transactions(cluster, topic, partitions)?;
            open.retain(|one| still.contains(one));
        }
        if let Some((partition, ends)) = open.pop() {
            send(Signal::SIGKILL)?;
            let after = cluster.ends(topic, partition)?;
            anyhow::ensure!(after == ends, "the transaction in {topic}[{partition}] ended before the kill");
            return Ok(OpenTransaction { partition, records: ends.high - ends.stable });
        }
        send(Signal::SIGCONT)?;
    }
    anyhow::bail!(
        "the instance had no transaction open, {frozen} times that it was looked at within {LIMIT:?}"
    )
}

/// The partitions in which a transaction is open now.
fn open_transactions(cluster: &Cluster, topic: &str, partitions: &[i32]) -> anyhow::Result<Vec<(i32, Ends)>> {
    let ends = partitions.iter().map(|partition| Ok((*partition, cluster.ends(topic, *partition)?)));
    Ok(ends.collect::<anyhow::Result<Vec<_>>>()?.into_iter().filter(|(_, ends)| is_open(ends)).collect())
}

fn is_open(ends: &Ends) -> bool {
    ends.stable < ends.high
}
