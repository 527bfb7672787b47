//! What the macros' expansions name. Private and versioned: not part of the public API.

mod info;
mod round;

pub use info::*;
pub use round::*;
