//! What the macros' expansions name. Private and versioned: not part of the public API.

mod check;
mod extractor;
mod firing;
mod info;
mod parts;
mod policy;
mod resource;
mod round;
mod runner;
mod shared;
mod stage;
mod table;
mod topics;
mod upgrade;
mod whole;

pub use check::{
    Entry, ResourceEntry, Table, check, dead_letters_apart, input_once, inputs_complete, key_not_null,
    no_timers, not_an_input, parameter, places, resource, stages, state_said, state_taken, timers_heard,
    timers_taken,
};
pub use extractor::*;
pub use firing::{Due, fired, timer};
pub use info::*;
pub use parts::{AllParts, PartList};
pub use policy::{
    Answers, HasDeadLetters, NoDeadLetters, OnInvalid, TakesAnything, WithDeadLetters, dead_letters,
    on_invalid,
};
pub use resource::*;
pub use round::*;
#[cfg(feature = "runtime")]
pub(crate) use runner::panicked;
pub use shared::*;
pub use stage::*;
pub use table::*;
pub use topics::Topics;
pub use upgrade::{UpgradeFn, Upgraded, old_state, old_version, read, step, upgraded};
pub use whole::{Broken, Deleted, Refused, Written};

pub use crate::codec::Codec;
pub use crate::codec::schema::{Of, OwnSchema, RegisteredSchema, SchemaInfo};
pub use crate::error::{BoxError, Result};
pub use crate::input::{Accepts, Input, IsRecord};
pub use crate::invalid::{Answer, Invalid};
pub use crate::next::Next;
pub use crate::pipeline::Pipeline;
pub use crate::resource::{Res, Resource};
pub use crate::state::{StateValue, Storable};
pub use crate::timers::{Clock, DueBy, Timer};
pub use crate::topic::Topic;
pub use bytes::Bytes;
pub use flechtwerk_macros::pipeline;
pub use std::future::Future;
pub use std::marker::Send;
pub use std::result::Result::Ok;
pub use std::time::Duration;

use std::process::ExitCode;

/// What `main!` calls.
#[cfg(not(feature = "kafka"))]
pub fn run(pipeline: &Pipeline) -> ExitCode {
    crate::offline::run(pipeline)
}

/// What `main!` calls.
#[cfg(feature = "kafka")]
pub fn run(pipeline: &Pipeline) -> ExitCode {
    crate::cli::run(pipeline)
}
