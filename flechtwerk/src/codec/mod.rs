//! Codecs: between a topic's bytes and Rust values. A topic always names its codecs; nothing is guessed from a type.

#[cfg(feature = "avro")]
mod avro;
#[cfg(feature = "cbor")]
mod cbor;
#[cfg(all(test, any(feature = "avro", feature = "cbor", feature = "protobuf")))]
pub(crate) mod hostile;
mod json;
mod json_writer;
mod number;
mod optional;
#[cfg(feature = "protobuf")]
mod protobuf;

use crate::error::{BoxError, CodecError};

pub use bytes::Bytes;
pub use json::Json;
pub(crate) use json::read as read_json;
pub(crate) use json_writer::{Keys, write as write_json};
pub use number::BigEndian;
pub use optional::{Avro, Cbor, Protobuf};

/// Encodes and decodes the keys or the values of a topic.
///
/// Decoding must be strict: bytes that are not exactly what [`encode`](Codec::encode) makes, or could make, are an
/// error. A codec of your own is a type without values:
///
/// ```
/// use flechtwerk::BoxError;
/// use flechtwerk::prelude::*;
///
/// /// A colour as three bytes.
/// pub struct Rgb;
///
/// impl Codec for Rgb {
///     type Item = (u8, u8, u8);
///
///     fn encode(item: &Self::Item, into: &mut Vec<u8>) -> Result<(), BoxError> {
///         into.extend([item.0, item.1, item.2]);
///         Ok(())
///     }
///
///     fn decode(bytes: &Bytes) -> Result<Self::Item, BoxError> {
///         match bytes[..] {
///             [r, g, b] => Ok((r, g, b)),
///             _ => Err("a colour has three bytes".into()),
///         }
///     }
/// }
///
/// #[topic("colours", key = Utf8, value = Rgb)]
/// pub struct Colours;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a codec",
    label = "no codec for the bytes of a topic",
    note = "text is `Utf8`, raw bytes are `Bytes`, numbers of fixed size are `BigEndian<u64>` and the like; \
            `Json<T>` is for every `T` with `#[derive(Serialize, Deserialize)]`; each may stand in `Nullable<..>`"
)]
pub trait Codec: 'static {
    /// What the bytes stand for in Rust.
    type Item: Send + 'static;

    /// Null is a value of its own. Only [`Nullable`] sets this.
    #[doc(hidden)]
    const NULLABLE: bool = false;

    /// Appends the item's bytes. An error is the stage's error at the record whose output this is; it must not
    /// repeat the item's contents.
    fn encode(item: &Self::Item, into: &mut Vec<u8>) -> Result<(), BoxError>;

    /// Reads an item from all of `bytes`. An error must not repeat their contents.
    fn decode(bytes: &Bytes) -> Result<Self::Item, BoxError>;

    /// Appends the bytes of an item that is a record's key. Equal keys must have equal bytes, since the bytes choose
    /// the partition and name the state. The same as [`encode`](Codec::encode) unless a format has several ways to
    /// write one value.
    fn encode_key(item: &Self::Item, into: &mut Vec<u8>) -> Result<(), BoxError> {
        Self::encode(item, into)
    }

    #[doc(hidden)]
    fn is_null(_: &Self::Item) -> bool {
        false
    }

    #[doc(hidden)]
    fn null() -> Option<Self::Item> {
        None
    }
}

/// Text as UTF-8: [`String`].
#[derive(Debug)]
pub enum Utf8 {}

impl Codec for Utf8 {
    type Item = String;

    fn encode(item: &String, into: &mut Vec<u8>) -> Result<(), BoxError> {
        into.extend_from_slice(item.as_bytes());
        Ok(())
    }

    fn decode(bytes: &Bytes) -> Result<String, BoxError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(CodecError::Utf8 { valid: error.valid_up_to() }.into()),
        }
    }
}

/// Bytes as they are. The codec is the type itself, a cheap reference into what was read; nothing is copied.
impl Codec for Bytes {
    type Item = Bytes;

    fn encode(item: &Bytes, into: &mut Vec<u8>) -> Result<(), BoxError> {
        into.extend_from_slice(item);
        Ok(())
    }

    fn decode(bytes: &Bytes) -> Result<Bytes, BoxError> {
        Ok(bytes.clone())
    }
}

/// A codec for values that may be null: [`Option`] of the inner codec's item.
///
/// A null value is a tombstone: in a compacted topic it deletes the key. An empty payload is not null, in either
/// direction: `Some(String::new())` stays `Some`.
///
/// ```
/// use flechtwerk::prelude::*;
///
/// #[topic("addresses", key = Utf8, value = Nullable<Utf8>)]
/// pub struct Addresses;
///
/// let mut out = Out::<Addresses>::default();
/// out.send("ann".into(), None);
/// out.send("bob".into(), Some(String::new()));
/// assert_eq!(out.sent(), [("ann".to_string(), None), ("bob".to_string(), Some(String::new()))]);
/// ```
#[derive(Debug)]
pub struct Nullable<C>(std::marker::PhantomData<C>, std::convert::Infallible);

impl<C: Codec> Codec for Nullable<C> {
    type Item = Option<C::Item>;

    const NULLABLE: bool = true;

    fn encode(item: &Self::Item, into: &mut Vec<u8>) -> Result<(), BoxError> {
        item.as_ref().map_or_else(|| Err(CodecError::Null.into()), |item| C::encode(item, into))
    }

    fn decode(bytes: &Bytes) -> Result<Self::Item, BoxError> {
        C::decode(bytes).map(Some)
    }

    fn encode_key(item: &Self::Item, into: &mut Vec<u8>) -> Result<(), BoxError> {
        item.as_ref().map_or_else(|| Err(CodecError::Null.into()), |item| C::encode_key(item, into))
    }

    fn is_null(item: &Self::Item) -> bool {
        item.is_none()
    }

    fn null() -> Option<Self::Item> {
        Some(None)
    }
}

/// Decodes a key or value that may be null.
pub(crate) fn decode<C: Codec>(bytes: Option<&Bytes>) -> Result<C::Item, BoxError> {
    match bytes {
        Some(bytes) => C::decode(bytes),
        None => C::null().ok_or_else(|| CodecError::Null.into()),
    }
}

#[cfg(test)]
mod tests;
