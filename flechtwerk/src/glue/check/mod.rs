//! Checks of what types can't say, made by constant evaluation when a pipeline is compiled.

mod pipeline;
mod resources;
mod stage;
mod state;
mod text;

pub use pipeline::{Entry, Table, check, places, stages};
pub use resources::{ResourceEntry, resource};
pub use stage::{
    dead_letters_apart, input_once, inputs_complete, key_not_null, no_timers, not_an_input, parameter,
    state_said, state_taken, timers_heard, timers_taken,
};
pub(super) use state::version_differs;
