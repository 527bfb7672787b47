//! Values behind the id of their schema, as Confluent's serializers write them. The registry itself is asked elsewhere: here
//! nothing waits.

pub(crate) mod frame;
mod known;

use std::any::type_name;

use bytes::Bytes;

pub(crate) use self::known::Unasked;
#[cfg(feature = "runtime")]
pub(crate) use self::known::unknown;
#[cfg(feature = "kafka")]
pub(crate) use self::known::{connect, learn};
use super::schema::{Of, OwnSchema, RegisteredSchema, SchemaInfo};
use super::{Codec, Confluent};
use crate::error::{BoxError, CodecError};
use crate::glue::RecordPart;

/// What can be the `F` of a `Confluent<F>`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no schema that a registry could hold",
    label = "not a codec with a schema",
    note = "`Confluent<..>` goes around `Avro<T>`, with the feature `avro`, and around `Protobuf<T>`, with the feature \
            `protobuf` and a `T` that implements `ProtobufSchema`"
)]
pub trait Registered: 'static {
    type Item: Send + 'static;
    /// How to read what one certain schema wrote.
    type Plan: Send + Sync + 'static;
    /// As registries call it.
    const KIND: &'static str;

    fn own(part: RecordPart) -> Result<OwnSchema, BoxError>;
    /// What is wrong, if it can't be read.
    fn plan(schema: &RegisteredSchema) -> Result<Self::Plan, String>;
    fn same(schema: &RegisteredSchema) -> bool;
    fn write(item: &Self::Item, part: RecordPart, into: &mut Vec<u8>) -> Result<(), BoxError>;
    /// Reads what stands behind the id.
    fn read(plan: &Self::Plan, bytes: Bytes) -> Result<Self::Item, BoxError>;
}

impl<F: Registered> Confluent<F> {
    const INFO: SchemaInfo = SchemaInfo {
        kind: F::KIND,
        type_name: type_name::<F::Item>,
        own: F::own,
        readable: |schema| plan::<F>(schema).map(drop),
        same: |schema| of_kind::<F>(schema) && F::same(schema),
    };
}

fn of_kind<F: Registered>(schema: &RegisteredSchema) -> bool {
    schema.kind.as_deref().is_none_or(|kind| kind == F::KIND)
}

fn plan<F: Registered>(schema: &RegisteredSchema) -> Result<F::Plan, String> {
    match &schema.kind {
        Some(kind) if kind != F::KIND => Err(format!("it is {kind}, not {}", F::KIND)),
        _ => F::plan(schema),
    }
}

impl<F: Registered> Codec for Confluent<F> {
    type Item = F::Item;

    const SCHEMA: Option<&'static SchemaInfo> = Some(&Self::INFO);

    fn encode(_: &F::Item, _: &mut Vec<u8>) -> Result<(), BoxError> {
        Err(NO_TOPIC.into())
    }

    fn decode(_: &Bytes) -> Result<F::Item, BoxError> {
        Err(NO_TOPIC.into())
    }

    fn write(item: &F::Item, of: Of, into: &mut Vec<u8>) -> Result<(), BoxError> {
        into.extend_from_slice(&known::front(of, &Self::INFO)?);
        F::write(item, of.part, into)
    }

    fn read(bytes: &Bytes, _: Of) -> Result<F::Item, BoxError> {
        let Some(id) = frame::id(bytes) else {
            return Err(malformed::<F>("no zero byte and id of a schema at the beginning".into()).into());
        };
        let plan = known::plan::<F, _>(id, plan::<F>)?;
        let Some(plan) = plan else {
            return Err(malformed::<F>(format!("no schema has the id {id}")).into());
        };
        match &*plan {
            Ok(plan) => F::read(plan, bytes.slice(frame::LENGTH..)),
            Err(why) => {
                Err(malformed::<F>(format!("what schema {id} wrote can't be read as this type: {why}"))
                    .into())
            }
        }
    }
}

const NO_TOPIC: &str = "a `Confluent` codec belongs to a topic, whose name leads to the schema: it can't be used by another codec";

fn malformed<F: Registered>(what: String) -> CodecError {
    CodecError::Malformed { format: F::KIND, of: type_name::<F::Item>(), what }
}

#[cfg(all(test, feature = "avro", feature = "protobuf"))]
mod tests;
