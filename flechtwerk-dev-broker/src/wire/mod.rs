//! Bytes on a connection: frames with limits, headers, and which APIs and versions exist here.
//!
//! Nothing in this module trusts a length that a client sent. A frame is read in bounded pieces, its structure is walked
//! before a message is decoded (the decoders reserve memory by the lengths they find), and whatever is wrong is one error
//! that closes one connection.

mod ahead;
mod api;
mod frame;
mod header;
mod message;
mod shape;
mod shapes;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use ahead::ReadAhead;
pub use api::Api;
pub(crate) use frame::{FrameBudget, FrameError, FrameReader, STALLED, Share};
pub(crate) use header::{Parsed, RequestHeader};
pub(crate) use message::{Malformed, answer_size, decode, encode};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use {
    shape::{Field, Kind},
    shapes::shape,
};
