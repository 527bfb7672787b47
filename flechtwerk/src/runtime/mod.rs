//! Runs a pipeline: the supervisor, stage instances, tasks and their threads.
//!
//! The supervisor is a plain thread: signals, group events and the stall limit are noticed however busy or blocked
//! the async runtime is.

mod batch;
mod configs;
mod context;
mod control;
mod error;
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
mod timing;
mod token;
mod transaction;
mod watchdog;
mod whole;
mod worker;

#[cfg(test)]
mod tests;

pub(crate) use context::{Changelog, Limits};
pub(crate) use error::{RunError, chain};
pub(crate) use supervisor::{Plan, StagePlan, Stopper, run};
pub(crate) use tables::TablePlan;
