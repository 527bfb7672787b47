//! How long records wait when an instance goes.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cluster::Cluster;
use crate::contestant::Contestant;
use crate::paced::{Paced, Passage};

/// How an instance goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Killed; another instance takes over when the session has expired.
    Killed,
    /// Asked to stop; another instance takes over.
    Stopped,
    /// Killed, and started again under its instance id; there is no other.
    Restarted,
}

/// The longest that any record made from the departure on had to wait for its output.
pub fn measure(cluster: &Cluster, contestant: &Contestant, departure: Departure) -> anyhow::Result<Duration> {
    let mut contestant = contestant.clone();
    if departure == Departure::Restarted {
        contestant.arguments.extend(["--instance-id".to_owned(), "bench".to_owned()]);
    }
    let run = contestant.prepare_with_input(cluster, 8)?;
    let leaving = run.start()?;
    let mut paced = Paced::start(cluster, &run.input, &run.output, 200)?;
    paced.wait_for_outputs(1, Duration::from_secs(30))?;
    let mut others = Vec::new();
    if departure != Departure::Restarted {
        others.push(run.start()?);
    }
    // The second has its half of the partitions, and no rebalance is under way.
    std::thread::sleep(Duration::from_secs(5));

    let gone = Instant::now();
    let watched = match departure {
        Departure::Stopped => {
            leaving.end(Signal::SIGTERM)?;
            Duration::from_secs(4)
        }
        Departure::Killed => {
            leaving.end(Signal::SIGKILL)?;
            Duration::from_secs(14)
        }
        Departure::Restarted => {
            leaving.end(Signal::SIGKILL)?;
            others.push(run.start()?);
            Duration::from_secs(4)
        }
    };
    std::thread::sleep(watched.saturating_sub(gone.elapsed()));
    for other in &mut others {
        other.alive()?;
    }
    let passages = paced.finish(Duration::from_secs(30))?;
    for other in others {
        other.end(Signal::SIGTERM)?;
    }
    run.clean_up()?;
    Ok(passages
        .iter()
        .filter(|passage| passage.created >= gone)
        .map(Passage::latency)
        .max()
        .unwrap_or_default())
}
