//! Codecs: between a topic's bytes and Rust values. A topic always names its codecs; nothing is guessed from a type.

#[cfg(feature = "avro")]
mod avro;
#[cfg(feature = "cbor")]
mod cbor;
#[cfg(feature = "schema-registry")]
pub(crate) mod confluent;
#[cfg(all(test, any(feature = "avro", feature = "cbor", feature = "protobuf")))]
#[allow(dead_code, reason = "each codec has use for some of it")]
pub(crate) mod hostile;
mod json;
mod json_writer;
mod number;
mod optional;
#[cfg(feature = "protobuf")]
mod protobuf;
pub(crate) mod schema;

use crate::error::{BoxError, CodecError};
use crate::glue::{FailureKind, RecordPart, Trouble};
#[cfg(all(feature = "runtime", not(feature = "schema-registry")))]
use crate::glue::{RawRecord, TopicInfo};
use crate::topic::{Key, Topic, Value};

pub use bytes::Bytes;
pub use json::Json;
pub(crate) use json::read as read_json;
pub(crate) use json_writer::{Keys, write as write_json};
pub use number::BigEndian;
pub use optional::{Avro, Cbor, Confluent, Protobuf};
#[cfg(all(feature = "protobuf", feature = "schema-registry"))]
pub use protobuf::ProtobufSchema;
use schema::{Of, SchemaInfo};

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

    /// The schema that a registry holds. Only [`Confluent`] has one.
    #[doc(hidden)]
    const SCHEMA: Option<&'static SchemaInfo> = None;

    /// Appends a key or value of a topic.
    #[doc(hidden)]
    fn write(item: &Self::Item, of: Of, into: &mut Vec<u8>) -> Result<(), BoxError> {
        match of.part {
            RecordPart::Key => Self::encode_key(item, into),
            RecordPart::Value => Self::encode(item, into),
        }
    }

    /// Reads a key or value of a topic.
    #[doc(hidden)]
    fn read(bytes: &Bytes, _: Of) -> Result<Self::Item, BoxError> {
        Self::decode(bytes)
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
    const SCHEMA: Option<&'static SchemaInfo> = C::SCHEMA;

    fn encode(item: &Self::Item, into: &mut Vec<u8>) -> Result<(), BoxError> {
        item.as_ref().map_or_else(|| Err(CodecError::Null.into()), |item| C::encode(item, into))
    }

    fn decode(bytes: &Bytes) -> Result<Self::Item, BoxError> {
        C::decode(bytes).map(Some)
    }

    fn encode_key(item: &Self::Item, into: &mut Vec<u8>) -> Result<(), BoxError> {
        item.as_ref().map_or_else(|| Err(CodecError::Null.into()), |item| C::encode_key(item, into))
    }

    fn write(item: &Self::Item, of: Of, into: &mut Vec<u8>) -> Result<(), BoxError> {
        item.as_ref().map_or_else(|| Err(CodecError::Null.into()), |item| C::write(item, of, into))
    }

    fn read(bytes: &Bytes, of: Of) -> Result<Self::Item, BoxError> {
        C::read(bytes, of).map(Some)
    }

    fn is_null(item: &Self::Item) -> bool {
        item.is_none()
    }

    fn null() -> Option<Self::Item> {
        Some(None)
    }
}

fn decode<C: Codec>(bytes: Option<&Bytes>, of: Of) -> Result<C::Item, BoxError> {
    match bytes {
        Some(bytes) => C::read(bytes, of),
        None => C::null().ok_or_else(|| CodecError::Null.into()),
    }
}

/// Decodes a topic's key, which may be null.
pub(crate) fn decode_key<T: Topic>(bytes: Option<&Bytes>) -> Result<Key<T>, BoxError> {
    decode::<T::KeyCodec>(bytes, Of { topic: T::INFO, part: RecordPart::Key })
}

/// Decodes a topic's value, which may be null.
pub(crate) fn decode_value<T: Topic>(bytes: Option<&Bytes>) -> Result<Value<T>, BoxError> {
    decode::<T::ValueCodec>(bytes, Of { topic: T::INFO, part: RecordPart::Value })
}

/// Appends a topic's key; false: it is null, and has no bytes.
pub(crate) fn encode_key<T: Topic>(key: &Key<T>, into: &mut Vec<u8>) -> Result<bool, BoxError> {
    encode::<T::KeyCodec>(key, Of { topic: T::INFO, part: RecordPart::Key }, into)
}

/// Appends a topic's value; false: it is null, and has no bytes.
pub(crate) fn encode_value<T: Topic>(value: &Value<T>, into: &mut Vec<u8>) -> Result<bool, BoxError> {
    encode::<T::ValueCodec>(value, Of { topic: T::INFO, part: RecordPart::Value }, into)
}

fn encode<C: Codec>(item: &C::Item, of: Of, into: &mut Vec<u8>) -> Result<bool, BoxError> {
    match C::is_null(item) {
        true => Ok(false),
        false => C::write(item, of, into).map(|()| true),
    }
}

/// A part that did not decode: the record is not valid. But where the schema is lacking, it is not the record's fault.
pub(crate) fn trouble(part: RecordPart, error: BoxError) -> Trouble {
    #[cfg(feature = "schema-registry")]
    if error.is::<confluent::Unasked>() {
        return (FailureKind::User, error);
    }
    (FailureKind::Decode(part), error)
}

/// The ids of schemas in these records that have to be asked for before the records are decoded.
#[cfg(all(feature = "runtime", feature = "schema-registry"))]
pub(crate) use confluent::unknown as unknown_schemas;

/// Without a registry there are none.
#[cfg(all(feature = "runtime", not(feature = "schema-registry")))]
pub(crate) fn unknown_schemas<'a>(
    _: &[&'static TopicInfo],
    _: impl IntoIterator<Item = &'a RawRecord>,
) -> Vec<u32> {
    Vec::new()
}

#[cfg(test)]
mod tests;
