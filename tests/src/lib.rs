//! What the behaviour tests share: a cluster from the environment, pipelines as child processes, readers that see
//! what a user sees, and waiting for conditions.
//!
//! The tests run real binaries against a real broker. They never sleep for luck: they wait for a condition, with
//! a deadline, and say what was missing when it passes.

pub mod case;
pub mod instance;
pub mod kafka;
pub mod observer;
pub mod pipeline;
pub mod stages_state;
pub mod wait;

pub use case::{Case, STOP, Stamp};
pub use instance::{Instance, Rig};
pub use kafka::Kafka;
pub use observer::{Observer, Seen};
pub use wait::{DEADLINE, wait_for, wait_within};
