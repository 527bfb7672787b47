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
    let mut frozen = 0;
    while start.elapsed() < LIMIT {
        if open_transactions(cluster, topic, partitions)?.is_empty() {
            continue;
        }
        send(Signal::SIGSTOP)?;
        frozen += 1;
        std::thread::sleep(FROZEN / 10);
        let seen = open_transactions(cluster, topic, partitions)?;
        // Where none is open any more there is nothing to wait for: the input lasts for few looks of a second.
        let still = match seen.is_empty() {
            true => Vec::new(),
            false => {
                std::thread::sleep(FROZEN);
                open_transactions(cluster, topic, partitions)?
            }
        };
        if let Some((partition, ends)) = seen.into_iter().find(|open| still.contains(open)) {
            send(Signal::SIGKILL)?;
            let after = cluster.ends(topic, partition)?;
            anyhow::ensure!(after == ends, "the transaction in {topic}[{partition}] ended before the kill");
            return Ok(OpenTransaction { partition, records: ends.high - ends.stable });
        }
        send(Signal::SIGCONT)?;
        // So that it has caught up and commits in its usual rhythm again.
        std::thread::sleep(FROZEN / 5);
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
