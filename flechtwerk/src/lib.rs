//! Exactly-once stream processing on Apache Kafka.

#[cfg(feature = "kafka")]
#[allow(dead_code)]
mod cli;
#[cfg(feature = "kafka")]
#[allow(dead_code)]
mod naming;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod observe;
mod pipeline;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod port;
pub mod record;
#[cfg(feature = "kafka")]
#[allow(dead_code)]
mod settings;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod startup;
#[cfg(feature = "kafka")]
mod topology;

#[doc(hidden)]
pub mod glue;

pub use pipeline::Pipeline;

/// Any error of a user's code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
