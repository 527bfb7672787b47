//! What the behaviour tests share: a cluster from the environment, pipelines as child processes, readers that see
//! what a user sees, and waiting for conditions.
//!
//! The tests run real binaries against a real broker. They never sleep for luck: they wait for a condition, with
//! a deadline, and say what was missing when it passes.

pub mod case;
pub mod cluster;
pub mod dev;
pub mod exact;
pub mod instance;
pub mod job;
pub mod kafka;
pub mod network;
pub mod observer;
pub mod pipeline;
pub mod probe;
pub mod proxied;
pub mod readme;
pub mod schema_registry;
pub mod source;
#[cfg(feature = "codecs")]
pub mod stages_codecs;
pub mod stages_extract;
pub mod stages_invalid;
pub mod stages_operations;
pub mod stages_shared;
pub mod stages_state;
pub mod stages_timers;
pub mod stages_upgrade;
pub mod subject;
pub mod wait;

pub use case::{Case, STOP, Stamp};
pub use cluster::Cluster;
pub use dev::Trial;
pub use exact::Exact;
pub use instance::{Instance, Rig};
pub use job::{Job, Load};
pub use kafka::Kafka;
pub use observer::{Observer, Seen};
pub use probe::Probe;
pub use proxied::Proxied;
pub use source::Source;
pub use subject::Subject;
pub use wait::{DEADLINE, wait_for, wait_within};
