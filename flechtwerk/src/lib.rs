//! Exactly-once stream processing on Apache Kafka.

#[cfg(feature = "kafka")]
#[allow(dead_code)]
mod kafka;
mod pipeline;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod port;
pub mod record;

#[doc(hidden)]
pub mod glue;

pub use pipeline::Pipeline;

/// Any error of a user's code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
