//! What the conformance checks are made of: a broker to ask, a client that speaks the raw protocol, and record batches
//! that can be wrong on purpose.
//!
//! The checks themselves are in `tests/suite`. They don't use a client library, because such a library hides what they are
//! about: which error code a broker answers, at which version, and what it does with a request that no good client sends.

pub mod batch;
pub mod broker;
pub mod calls;
pub mod client;
pub mod codec;
pub mod read;
pub mod wait;

pub use batch::{Batch, Record};
pub use broker::{Broker, unique};
pub use calls::groups::Member;
pub use calls::records::{COMMITTED, EARLIEST, LATEST, MAX_TIMESTAMP, UNCOMMITTED};
pub use calls::transactions::{Producer, ToolMarker};
pub use client::{Answer, Client, code, text};
pub use kafka_protocol::error::ResponseError as Code;
pub use wait::{wait_for, wait_within};
