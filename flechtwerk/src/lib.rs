//! Exactly-once stream processing on Apache Kafka.

#[allow(dead_code)]
mod format;
mod pipeline;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod port;
pub mod record;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod store;

#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod task;

#[doc(hidden)]
pub mod glue;

pub use pipeline::Pipeline;

/// Any error of a user's code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
