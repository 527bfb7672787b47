//! What can be seen of a running pipeline: log lines, metrics, health and the progress of restores.

mod health;
mod http;
pub(crate) mod logging;
pub(crate) mod metrics;
pub(crate) mod names;
mod restoring;

pub(crate) use health::Health;
pub(crate) use http::MetricsServer;
pub(crate) use restoring::{RestoreProgress, Restoring};
