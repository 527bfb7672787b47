//! What can be seen of a running pipeline: log lines, metrics, health and the progress of restores.

mod health;
mod http;
pub(crate) mod logging;
pub(crate) mod names;
mod recorder;
mod restoring;

pub(crate) use health::Health;
pub(crate) use http::MetricsServer;
pub(crate) use restoring::Restores;
