//! From the body of a frame to a message of `kafka-protocol` and back.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::api::Api;
use super::header::RequestHeader;
use super::shape::walk;
use super::shapes::shape;

/// What is wrong with the bytes of a request. It names the place and never quotes content.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {what}")]
pub(crate) struct Malformed {
    place: &'static str,
    what: Cow<'static, str>,
}

impl Malformed {
    pub(crate) fn new(place: &'static str, what: impl Into<Cow<'static, str>>) -> Malformed {
        Malformed { place, what: what.into() }
    }
}

/// Decodes the body of a request.
pub(crate) fn decode<T: Decodable>(api: Api, version: i16, mut body: Bytes) -> Result<T, Malformed> {
    let rest = walk(shape(api), version, api.flexible(version), &body)?;
    // The walk leaves nothing to trip over that is known. A decoder that panics all the same costs its connection alone.
    let decoded = catch_unwind(AssertUnwindSafe(|| T::decode(&mut body, version)));
    match decoded {
        Ok(Ok(message)) if body.len() == rest => Ok(message),
        Ok(Ok(_)) => Err(Malformed::new("request", "its fields are not as long as they say")),
        Ok(Err(error)) => Err(Malformed::new("request", error.to_string())),
        Err(_) => Err(Malformed::new("request", "the decoder panicked")),
    }
}

/// Length, correlation id and tagged fields.
const ANSWER_HEADER: usize = 9;

/// How long the frame with an answer will be, at most.
pub(crate) fn answer_size<T: Encodable>(header: &RequestHeader, answer: &T) -> Result<usize, Malformed> {
    let size = answer.compute_size(header.version);
    let size = size.map_err(|error| Malformed::new("answer", error.to_string()))?;
    Ok(size.saturating_add(ANSWER_HEADER))
}

/// A whole frame with an answer, its length in front.
pub(crate) fn encode<T: Encodable>(header: &RequestHeader, answer: &T) -> Result<Bytes, Malformed> {
    let failed = |error: &dyn std::fmt::Display| Malformed::new("answer", error.to_string());
    let mut frame = BytesMut::with_capacity(answer_size(header, answer)?);
    frame.put_i32(0);
    frame.put_i32(header.correlation_id);
    if header.api.flexible_answer(header.version) {
        frame.put_u8(0);
    }
    answer.encode(&mut frame, header.version).map_err(|error| failed(&error))?;
    let length = frame.len().saturating_sub(4);
    let length = i32::try_from(length).map_err(|_| Malformed::new("answer", "longer than 2 GiB"))?;
    if let Some(prefix) = frame.first_chunk_mut::<4>() {
        *prefix = length.to_be_bytes();
    }
    Ok(frame.freeze())
}
