//! Exactly-once stream processing on Apache Kafka.

pub mod codec;
mod error;
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "only a changelog has keys"))]
mod format;
mod input;
mod out;
mod param;
mod partitioner;
mod pipeline;
pub mod prelude;
pub mod record;
mod state;
pub mod testing;
mod topic;

#[cfg(feature = "kafka")]
mod cli;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kafka")]
mod naming;
#[cfg(feature = "kafka")]
mod observe;
#[cfg(feature = "kafka")]
mod port;
#[cfg(feature = "kafka")]
mod runtime;
#[cfg(feature = "kafka")]
mod settings;
#[cfg(feature = "kafka")]
mod startup;
#[cfg(feature = "kafka")]
mod store;
#[cfg(feature = "kafka")]
mod task;
#[cfg(feature = "kafka")]
mod topology;

#[doc(hidden)]
pub mod glue;

pub use codec::Codec;
pub use error::{BoxError, CodecError, Result};
pub use input::Input;
pub use out::{Out, OutRecord};
pub use param::{Slot, SlotParts};
pub use pipeline::Pipeline;
pub use record::Record;
pub use state::{State, StateValue};
pub use topic::{Key, Topic, Value};

pub use flechtwerk_macros::{Input, State, topic, transformer};

/// Lists the stages of a pipeline.
#[macro_export]
macro_rules! pipeline {
    ($($tokens:tt)*) => {
        $crate::glue::pipeline! { @$crate $($tokens)* }
    };
}

/// Makes the `main` function that runs a pipeline.
#[macro_export]
macro_rules! main {
    ($pipeline:path $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::glue::run(&$pipeline)
        }
    };
}
