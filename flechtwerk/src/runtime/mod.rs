//! Runs a pipeline: the supervisor, stage instances, tasks and their threads.
//!
//! The supervisor is a plain thread: signals, group events and the stall limit are noticed however busy or blocked
//! the async runtime is.

mod batch;
mod configs;
mod context;
mod control;
mod early;
mod error;
mod host;
mod incomplete;
#[cfg(feature = "kafka")]
mod input_watch;
mod lag;
mod messages;
mod patience;
mod polls;
mod reading;
mod restore;
mod rounds;
mod schedule;
mod schemas;
mod stage;
mod supervisor;
mod tables;
mod task;
#[cfg(test)]
mod testing;
mod timing;
mod token;
mod topic_watch;
mod transaction;
mod turns;
mod watchdog;
mod whole;
mod worker;

#[cfg(all(test, feature = "kafka"))]
mod tests;

pub(crate) use context::{Changelog, Limits};
#[cfg(feature = "kafka")]
pub(crate) use error::RunError;
#[cfg(feature = "kafka")]
pub(crate) use error::chain;
#[cfg(feature = "simulation")]
pub use host::{Host, install};
#[cfg(feature = "fuzzing")]
pub(crate) use restore::change as changelog_change;
#[cfg(feature = "kafka")]
pub(crate) use supervisor::Stopper;
#[cfg(feature = "kafka")]
pub(crate) use supervisor::run;
#[cfg(feature = "simulation")]
pub(crate) use supervisor::run_simulated;
pub(crate) use supervisor::{Plan, StagePlan};
#[cfg(feature = "kafka")]
pub(crate) use tables::TablePlan;
