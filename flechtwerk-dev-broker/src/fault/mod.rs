//! Faults on demand: which requests they hit, what they do, and how a test learns that they happened; and the log of requests.

mod builder;
mod handle;
mod requests;
mod rule;

pub use builder::FaultBuilder;
pub use handle::{Fault, Held};
pub use requests::{Request, Requests};
pub(crate) use rule::{Action, Faults, Subject, When};
