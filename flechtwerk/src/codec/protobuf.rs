//! Protocol Buffers, by the messages of prost.

use bytes::Bytes;
use prost::Message;

use super::{Codec, Protobuf};
use crate::error::{BoxError, CodecError};

const NAME: &str = "Protobuf";

/// What can be the `T` of a `Protobuf<T>`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no message of Protocol Buffers",
    label = "lacks `prost::Message`",
    note = "let prost-build make it of a .proto file, or add `#[derive(Clone, PartialEq, prost::Message)]` and give each field a \
            `#[prost(..)]`; the crate `prost` has to be of version 0.14"
)]
pub trait ProtobufItem: Message + Default + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Message + Default + 'static> ProtobufItem for T {}

impl<T: ProtobufItem> Codec for Protobuf<T> {
    type Item = T;

    fn encode(item: &T, into: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(item
            .encode(into)
            .map_err(|error| CodecError::Unwritten { format: NAME, why: error.to_string() })?)
    }

    fn decode(bytes: &Bytes) -> Result<T, BoxError> {
        Ok(T::decode(bytes.clone()).map_err(|error| unread::<T>(&error.to_string()))?)
    }
}

/// prost's texts end in what is wrong, some of them with a number from the bytes: that is left out.
fn unread<T>(text: &str) -> CodecError {
    let reason = text.rsplit(": ").find(|part| !part.contains(|c: char| c.is_ascii_digit()));
    let what = reason.unwrap_or("the bytes are no message").to_owned();
    CodecError::Malformed { format: NAME, of: std::any::type_name::<T>(), what }
}

#[cfg(feature = "schema-registry")]
mod declared;
#[cfg(feature = "schema-registry")]
mod place;
#[cfg(feature = "schema-registry")]
mod registered;
#[cfg(feature = "schema-registry")]
pub use registered::ProtobufSchema;

#[cfg(test)]
mod tests;
