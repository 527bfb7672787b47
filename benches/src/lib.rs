//! Flechtwerk measured against a hand-written loop that does the same work, in one run on one broker.

pub mod cluster;
pub mod contestant;
pub mod load;
pub mod loop_;
pub mod perf;
pub mod throughput;
pub mod verify;
