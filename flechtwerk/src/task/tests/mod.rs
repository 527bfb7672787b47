//! The state machine in a simulated world: random histories of two owners, with every fault at every step.

mod edges;
mod histories;
mod steps;
mod world;
