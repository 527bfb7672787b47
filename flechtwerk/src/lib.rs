//! Exactly-once stream processing on Apache Kafka.

#[allow(dead_code)]
mod format;
pub mod codec;
mod error;
mod input;
mod out;
mod param;
#[allow(dead_code)]
mod partitioner;
#[cfg(feature = "kafka")]
#[allow(dead_code)]
mod kafka;
mod pipeline;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod naming;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod observe;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod port;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod runtime;
pub mod prelude;
pub mod record;
#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod store;

#[cfg(feature = "kafka")]
#[allow(dead_code, unused_imports)]
mod task;
mod state;
pub mod testing;
mod topic;

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
