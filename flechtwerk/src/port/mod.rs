//! Ports: what the runtime asks of the outside world, as traits. The adapters in `kafka` and `store` implement
//! them; tests put simulations in their place. Nothing here names a client library.

mod broker;
mod schemas;
mod store;

pub use broker::*;
pub(crate) use schemas::*;
pub use store::*;
