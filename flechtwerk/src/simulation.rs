//! The inside of the runtime for simulations: the state machine of a task, the ports, and a process that runs on them.
//! Unstable and no part of what the crate promises: anything here may change with any release.

use std::sync::Arc;
use std::time::Duration;

pub use crate::compact::CompactBytes;
pub use crate::flaws::{Flaw, is_on, switch_on};
pub use crate::format::ChangelogRecord;
pub use crate::port::*;
pub use crate::runtime::{Host, install};
pub use crate::task::*;

use crate::naming::{Mapping, names};
use crate::observe::{Health, Restores};
use crate::runtime::{Changelog, Limits, Plan, StagePlan, run_simulated};

/// The times a process works by; see the settings of the same names.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// `commit_interval`
    pub commit_interval: Duration,
    /// `broker_timeout`
    pub broker_timeout: Duration,
    /// `revoke_timeout`
    pub revoke_timeout: Duration,
    /// `heartbeat_interval`
    pub heartbeat_interval: Duration,
    /// `transaction_timeout`
    pub transaction_timeout: Duration,
    /// `shutdown_timeout`
    pub shutdown_timeout: Duration,
    /// `max_poll_records`
    pub max_poll_records: usize,
}

/// The stores of a process that keeps its state in memory: its own, not a model of them.
pub fn memory_stores() -> Arc<dyn StoreFactory> {
    Arc::new(crate::store::MemoryStores::default())
}

/// What a process is made of.
pub struct Process {
    /// A pipeline of one stage.
    pub pipeline: &'static crate::Pipeline,
    /// Topic id of the changelog of a stage with state.
    pub changelog_id: String,
    /// Of each input, and of the changelog.
    pub partitions: i32,
    /// The static id, if it has one.
    pub instance_id: Option<String>,
    /// Limits.
    pub times: Times,
    /// The cluster.
    pub clients: Arc<dyn Clients>,
    /// The state folder.
    pub stores: Arc<dyn StoreFactory>,
}

/// Runs a process to its end, on the calling thread of the host. `started` gets the means to stop it cleanly.
///
/// # Errors
///
/// What made the process stop.
pub fn run(
    process: Process,
    runtime: &tokio::runtime::Handle,
    started: impl FnOnce(Box<dyn Fn() + Send>),
) -> Result<(), String> {
    let stages: Vec<_> = process.pipeline.stages.iter().map(|stage| stage.info()).collect();
    let nothing = std::collections::BTreeMap::new();
    let mapping = Mapping::of("", &nothing);
    let named = names(process.pipeline.name, &stages, mapping)
        .map_err(|problems| format!("{} problems of naming", problems.len()))?;
    let times = process.times;
    let stages = process.pipeline.stages.iter().zip(named).map(|(stage, names)| StagePlan {
        stage: *stage,
        changelog: names.changelog.clone().map(|topic| Changelog {
            topic,
            id: process.changelog_id.clone(),
            partitions: process.partitions,
        }),
        names,
        partitions: process.partitions,
        tables: Vec::new(),
    });
    let plan = Plan {
        stages: stages.collect(),
        instance_id: process.instance_id,
        limits: Limits {
            max_poll_records: times.max_poll_records,
            max_batch_bytes: 8 << 20,
            max_batch_time: Duration::from_secs(300),
            commit_interval: times.commit_interval,
            idle_commit: Duration::from_secs(60),
            broker_timeout: times.broker_timeout,
            revoke_timeout: times.revoke_timeout,
            heartbeat_interval: times.heartbeat_interval,
            transaction_timeout: times.transaction_timeout,
            max_concurrent_polls: 1,
        },
        stay_in_group: false,
        shutdown_timeout: times.shutdown_timeout,
        clients: process.clients,
        stores: process.stores,
        schemas: None,
        health: Health::default(),
        restores: Restores::default(),
    };
    run_simulated(plan, runtime, |stopper| started(Box::new(move || stopper.stop())))
        .map_err(|error| error.to_string())
}
