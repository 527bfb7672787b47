//! Exactly-once stream processing on Apache Kafka: annotate async functions, run the binary.
//!
//! A pipeline is made of topics, which are types, and of stages, which are functions. A stage takes one record at a time,
//! may keep state for each key, and sends records to other topics. Its outputs, its state and the offset of its input are
//! committed together or not at all, whatever is killed when.
//!
//! ```
//! use flechtwerk::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[topic("words", key = Utf8, value = Utf8)]
//! pub struct Words;
//!
//! #[topic("counts", key = Utf8, value = Json<u64>)]
//! pub struct Counts;
//!
//! #[derive(State, Serialize, Deserialize, Default)]
//! pub struct Count {
//!     n: u64,
//! }
//!
//! #[transformer(inputs = [Words], state = Count)]
//! pub async fn count(word: Record<Words>, state: &mut State<Count>, out: &mut Out<Counts>) -> flechtwerk::Result {
//!     let count = state.get_or_insert_default();
//!     count.n += 1;
//!     out.send(word.key, count.n);
//!     Ok(())
//! }
//!
//! flechtwerk::pipeline!(pub DEMO = "demo": [count]);
//! # fn main() {}
//! ```
//!
//! Data comes in from outside of Kafka by [extractors](macro@extractor), page by page: the messages of a page and the
//! cursor behind it are committed together as well.
//!
//! `src/main.rs` is one line, `flechtwerk::main!(my_crate::DEMO);`, and makes the whole program: the arguments, the
//! settings, the checks at the start.
//!
//! What holds and what does not: the code of a stage may run more than once for a record, after a crash or when another
//! instance takes over. Exactly once are its outputs, its state and its position. A call to another system from a stage is
//! outside of that.
//!
//! # Features
//!
//! - `kafka` (default): runs pipelines against Apache Kafka. Without it the macros, the types and [`testing`] remain,
//!   which is all that a test needs, and nothing written in C is compiled. The program still builds, and shows its
//!   `topology`.
//! - `rocksdb` (default): keeps state on disk.
//! - `tls`, `sasl`, `zstd`: for clusters that ask for them.
//! - `cbor`, `avro`, `protobuf`: the codecs of these names.
//! - `schema-registry`: the codec [`Confluent`](codec::Confluent), for `avro` and `protobuf` with schemas in a registry.
//! - `dev-broker`: `run --dev`, the program on a development broker of its own, for first steps. It brings `kafka` along.

#[cfg(feature = "runtime")]
#[macro_use]
mod flaws;
#[cfg(feature = "runtime")]
#[macro_use]
mod crash;

pub mod codec;
mod compact;
#[cfg(feature = "runtime")]
mod duration;
mod error;
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "only a changelog has keys"))]
mod format;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod input;
pub mod invalid;
mod next;
mod out;
mod param;
mod partitioner;
mod pipeline;
pub mod prelude;
pub mod record;
mod resource;
mod shared;
mod state;
mod table;
pub mod testing;
mod timers;
mod topic;

mod chosen;
#[cfg(feature = "kafka")]
mod cli;
#[cfg(test)]
mod demo;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "a topology has no transactional ids"))]
mod naming;
mod nearest;
#[cfg(feature = "runtime")]
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "nobody looks at a simulation"))]
mod observe;
#[cfg(not(feature = "kafka"))]
mod offline;
#[cfg(feature = "runtime")]
#[doc(hidden)]
#[allow(unreachable_pub, reason = "a simulation reaches it")]
mod port;
#[cfg(feature = "schema-registry")]
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "only a run has a registry"))]
mod registry;
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "a mend's commands need a cluster"))]
mod report;
#[cfg(feature = "runtime")]
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "a simulation runs only a part of it"))]
mod runtime;
#[cfg(feature = "kafka")]
mod settings;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
#[cfg(feature = "kafka")]
mod startup;
#[cfg(feature = "runtime")]
mod store;
#[cfg(feature = "runtime")]
#[doc(hidden)]
#[allow(unreachable_pub, reason = "a simulation reaches it")]
mod task;
mod text_table;
mod topology;

#[doc(hidden)]
pub mod glue;

pub use codec::Codec;
#[cfg(feature = "crash-points")]
#[doc(hidden)]
pub use crash::CrashPoint;
pub use error::{BoxError, CodecError, Result};
#[cfg(feature = "flaws")]
#[doc(hidden)]
pub use flaws::Flaw;
pub use input::Input;
pub use next::Next;
pub use out::{Out, OutRecord};
pub use param::{Slot, SlotParts};
pub use pipeline::Pipeline;
pub use record::Record;
pub use resource::{Res, Resource, Secret};
pub use shared::{Shared, SharedParts};
pub use state::{State, StateValue};
pub use table::{Row, Table, TableTopic};
pub use timers::{Clock, Timer, Timers};
pub use topic::{Key, Topic, Value};

pub use flechtwerk_macros::{Input, State, extractor, resource, topic, transformer};

/// Lists the stages of a pipeline, by the paths of their functions.
///
/// It makes a static of type [`Pipeline`]. The name in quotes is the first part of the stages' application ids, hence of
/// their consumer groups, transactional ids and changelog topics: `demo-count`, `demo-count-0`, `demo-count-changelog`.
/// Entries may have `#[cfg(..)]`, as their functions may.
///
/// When it is compiled, it checks that the names of stages and application ids are unique, and that no two types of topic
/// stand for one name, or for names that differ only in `.` and `_`, which Kafka refuses to have beside each other.
///
/// ```
/// use flechtwerk::prelude::*;
///
/// #[topic("lines", key = Utf8, value = Utf8)]
/// pub struct Lines;
/// #[topic("loud-lines", key = Utf8, value = Utf8)]
/// pub struct LoudLines;
///
/// #[transformer(inputs = [Lines])]
/// pub async fn shout(line: Record<Lines>, out: &mut Out<LoudLines>) -> flechtwerk::Result {
///     out.send(line.key, line.value.to_uppercase());
///     Ok(())
/// }
///
/// flechtwerk::pipeline!(
///     /// Makes lines loud.
///     pub LOUD = "loud": [shout]
/// );
/// assert_eq!(LOUD.name(), "loud");
/// ```
///
/// Resources that stages take are listed behind them: `pub DEMO = "demo": [page], resources = [pager]`; see
/// [`#[resource]`](macro@crate::resource). That each one which is taken is listed, and that they can be made in some order, is
/// checked as well.
///
/// A stage that is a function `count` in a module `count` is listed as `count::count`; importing it beside the module does
/// not work, since then two things would have one name.
#[macro_export]
macro_rules! pipeline {
    ($($tokens:tt)*) => {
        $crate::glue::pipeline! { @$crate $($tokens)* }
    };
}

/// Makes the `main` function that runs a pipeline.
///
/// ```no_run
/// # mod demo {
/// #     use flechtwerk::prelude::*;
/// #     #[topic("lines", key = Utf8, value = Utf8)]
/// #     pub struct Lines;
/// #     #[transformer(inputs = [Lines])]
/// #     pub async fn count(_: Record<Lines>) -> flechtwerk::Result {
/// #         Ok(())
/// #     }
/// #     flechtwerk::pipeline!(pub DEMO = "demo": [count]);
/// # }
/// flechtwerk::main!(demo::DEMO);
/// ```
///
/// The program exits with 0 after a clean stop, with 1 if it failed while running, and with 2 if it was called wrongly or
/// a check at the start failed.
#[macro_export]
macro_rules! main {
    ($pipeline:expr $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            let pipeline: $crate::Pipeline = $pipeline;
            $crate::glue::run(&pipeline)
        }
    };
}
