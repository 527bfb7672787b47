//! Protocol Buffers whose schemas a registry holds. A value is read without its schema, which only says which message it is.

use std::any::type_name;

use bytes::Bytes;

use super::declared::{Declared, tokens};
use super::{NAME, ProtobufItem, place};
use crate::codec::confluent::Registered;
use crate::codec::schema::{OwnSchema, RegisteredSchema};
use crate::codec::{Codec, Protobuf};
use crate::error::{BoxError, CodecError};
use crate::glue::RecordPart;

/// A message whose .proto file a registry holds, as `Confluent<Protobuf<T>>` needs it.
///
/// ```
/// use flechtwerk::codec::ProtobufSchema;
///
/// #[derive(Clone, PartialEq, prost::Message)]
/// pub struct Alert {
///     #[prost(string, tag = "1")]
///     pub account: String,
/// }
///
/// impl ProtobufSchema for Alert {
///     // Mostly `include_str!("alert.proto")`.
///     const PROTO: &'static str = r#"
///         syntax = "proto3";
///         package bank;
///         message Alert { string account = 1; }
///     "#;
///     const MESSAGE: &'static str = "bank.Alert";
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the .proto file of `{Self}` is not known",
    label = "lacks `ProtobufSchema`",
    note = "a schema registry holds the file: `impl ProtobufSchema for {Self}`, with `const PROTO: &'static str = \
            include_str!(\"..\");` and `const MESSAGE: &'static str = \"package.Name\";`"
)]
pub trait ProtobufSchema {
    /// The text of the file. What it imports must be Google's own, which every registry knows.
    const PROTO: &'static str;
    /// The message's full name in it, with the package.
    const MESSAGE: &'static str;
}

impl<T: ProtobufItem + ProtobufSchema> Registered for Protobuf<T> {
    type Item = T;
    /// The place of the message.
    type Plan = Vec<usize>;
    const KIND: &'static str = "PROTOBUF";

    fn own(_: RecordPart) -> Result<OwnSchema, BoxError> {
        let place = place_of::<T>(T::PROTO)?;
        Ok(OwnSchema { text: T::PROTO.to_owned(), behind_id: place::write(&place) })
    }

    fn plan(schema: &RegisteredSchema) -> Result<Vec<usize>, String> {
        place_of::<T>(&schema.text)
    }

    fn same(schema: &RegisteredSchema) -> bool {
        tokens(&schema.text) == tokens(T::PROTO)
    }

    fn write(item: &T, part: RecordPart, into: &mut Vec<u8>) -> Result<(), BoxError> {
        match part {
            RecordPart::Key => Protobuf::encode_key(item, into),
            RecordPart::Value => Protobuf::encode(item, into),
        }
    }

    fn read(plan: &Vec<usize>, bytes: Bytes) -> Result<T, BoxError> {
        let malformed =
            |what: &str| CodecError::Malformed { format: NAME, of: type_name::<T>(), what: what.to_owned() };
        let Some((place, size)) = place::read(&bytes) else {
            return Err(malformed("the place of the message in its schema can't be read").into());
        };
        if place != *plan {
            return Err(malformed("another message of the same schema").into());
        }
        Protobuf::decode(&bytes.slice(size..))
    }
}

fn place_of<T: ProtobufSchema>(file: &str) -> Result<Vec<usize>, String> {
    let declared = Declared::of(file).ok_or("the braces of the .proto file don't match")?;
    declared.place(T::MESSAGE).ok_or_else(|| {
        let first = declared.name(&[0]);
        let there = first.map_or("there is none".to_owned(), |name| format!("the first message is `{name}`"));
        format!("the .proto file declares no message `{}`: {there}", T::MESSAGE)
    })
}
