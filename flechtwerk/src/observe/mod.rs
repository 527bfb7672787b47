//! What can be seen of a running pipeline: log lines, metrics, health and the progress of restores.

mod health;
#[cfg(feature = "kafka")]
mod http;
#[cfg(feature = "kafka")]
pub(crate) mod logging;
pub(crate) mod names;
#[cfg(feature = "kafka")]
mod recorder;
mod restoring;

pub(crate) use health::Health;
#[cfg(feature = "kafka")]
pub(crate) use http::MetricsServer;
pub(crate) use restoring::Restores;
