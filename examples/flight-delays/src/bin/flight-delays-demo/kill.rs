//! Kills an instance while its transaction is open, and makes sure that it was.
//!
//! From outside an open transaction is seen by a partition's two ends: records lie behind the stable one. The instance
//! is frozen first, so that nothing changes between looking and killing, and so that a transaction of the other
//! instance ends: one that stays open is that of the frozen one.

use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::{Cluster, Ends};

/// How long to look for an open transaction.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the instance is frozen before its transaction is believed to be open. Far less than a session time-out.
const FROZEN: Duration = Duration::from_secs(1);

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
    while start.elapsed() < LIMIT {
        let Some((partition, _)) = find_open(cluster, topic, partitions)? else { continue };
        send(Signal::SIGSTOP)?;
        let seen = cluster.ends(topic, partition)?;
        std::thread::sleep(FROZEN);
        if is_open(&seen) && cluster.ends(topic, partition)? == seen {
            send(Signal::SIGKILL)?;
            let after = cluster.ends(topic, partition)?;
            anyhow::ensure!(after == seen, "the transaction in {topic}[{partition}] ended before the kill");
            return Ok(OpenTransaction { partition, records: seen.high - seen.stable });
        }
        send(Signal::SIGCONT)?;
        // So that it has caught up and commits in its usual rhythm again.
        std::thread::sleep(FROZEN / 5);
    }
    anyhow::bail!("no open transaction was seen within {LIMIT:?}")
}

fn find_open(cluster: &Cluster, topic: &str, partitions: &[i32]) -> anyhow::Result<Option<(i32, Ends)>> {
    for partition in partitions {
        let ends = cluster.ends(topic, *partition)?;
        if is_open(&ends) {
            return Ok(Some((*partition, ends)));
        }
    }
    Ok(None)
}

fn is_open(ends: &Ends) -> bool {
    ends.stable < ends.high
}
