//! The chaos rig: real processes on real brokers, faults of every kind by a schedule that a seed gives, and every invariant of the
//! guarantee checked during the run and after it.

pub mod brokers;
pub mod disk;
pub mod driver;
pub mod feed;
pub mod fleet;
pub mod growth;
pub mod interrupt;
pub mod journal;
pub mod judge;
mod model;
pub mod names;
pub mod network;
pub mod numbers;
pub mod offsets;
pub mod opened;
pub mod outcome;
pub mod peek;
pub mod pipeline;
pub mod progress;
pub mod raw;
pub mod recorded;
pub mod report;
pub mod run;
pub mod samples;
pub mod schedule;
pub mod stores;
pub mod tier;
pub mod timeline;
pub mod total;
pub mod watch;
pub mod workload;
