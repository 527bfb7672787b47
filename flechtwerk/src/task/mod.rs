//! The life of a task, without I/O: state machine, stamps, batches and the overlay of states in flight.

mod event;
mod machine;
mod overlay;
mod round;
mod stamp;
#[cfg(test)]
mod tests;

pub use event::*;
pub use machine::{Config, FIRST_POSITIONS, Machine};
pub use overlay::{Layer, Overlay};
pub(crate) use round::{Grouped, group, merge_by_timestamp};
pub use stamp::{RESETTING, Stamp};
