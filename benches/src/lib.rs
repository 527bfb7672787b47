//! Flechtwerk measured against a hand-written loop that does the same work, in one run on one broker.

pub mod cluster;
pub mod compile;
pub mod contestant;
pub mod handover;
pub mod latency;
pub mod load;
pub mod loop_;
pub mod paced;
pub mod pages;
pub mod perf;
pub mod report;
pub mod startup;
pub mod suite;
pub mod throughput;
pub mod timers;
pub mod tokens;
pub mod transactions;
pub mod verify;
