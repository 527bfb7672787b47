//! Simulated clusters: the runtime of Flechtwerk, its task state machine and the development broker's coordinators and logs, as they
//! are, on a clock and wires of a simulation's own. One seed is one history; each is judged by `flechtwerk-checkers`.
//!
//! What is real: all of `flechtwerk::runtime` that a transformer needs (supervisor, membership, tasks, workers, transactions,
//! restores), `flechtwerk::task`, the macros' glue, stores in memory; groups, transactions and partition logs of
//! `flechtwerk-dev-broker`. What is modelled: librdkafka (`producer`, `member`, `reader`), the disk (`store`), the network (`wire`,
//! `world`).

mod broker;
mod calls;
pub mod chance;
pub mod controls;
pub mod history;
mod judge;
mod member;
mod network;
pub mod plan;
mod process;
mod producer;
mod reader;
mod records;
pub mod shrink;
pub mod small;
pub mod stages;
mod store;
mod threads;
mod times;
pub mod wire;
mod world;

pub use history::{Outcome, play};
pub use plan::Plan;
