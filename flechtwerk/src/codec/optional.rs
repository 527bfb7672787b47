//! The codecs that features bring. Their types are always there, so that a program which forgot the feature is told so, and
//! not that there is no such type.

use std::convert::Infallible;
use std::marker::PhantomData;

/// CBOR of any `T` with `#[derive(Serialize, Deserialize)]`; needs the feature `cbor`.
///
/// - Bytes after the value are an error, as is all that `T`'s `Deserialize` refuses, and nesting deeper than 128.
/// - As a key it is in the deterministic form of RFC 8949: map keys sorted by their bytes, no negative zero; NaN is an error.
///   So equal keys are equal bytes, unless `T` itself iterates in a random order, as a `HashSet` does.
#[derive(Debug)]
pub struct Cbor<T>(PhantomData<T>, Infallible);

/// Avro of any `T` with `#[derive(Serialize, Deserialize, AvroSchema)]`; needs the feature `avro`.
///
/// Alone it writes and reads by the schema of `T`, without a header: all who read must have the very same schema. Schemas that
/// evolve need a registry: [`Confluent`]`<Avro<T>>`.
///
/// - Bytes after the value are an error, as are lengths that the bytes do not have room for, and nesting deeper than 128.
/// - As a key it must not hold a map, whose order Avro leaves open, nor NaN; zero has no sign. So equal keys are equal bytes.
#[derive(Debug)]
pub struct Avro<T>(PhantomData<T>, Infallible);

/// Protocol Buffers of any `T` that is a [`prost::Message`](https://docs.rs/prost); needs the feature `protobuf`.
///
/// - Decoding is as strict as the format allows: fields that `T` does not know are skipped, those that are missing have
///   their default. A message of another type may so pass for a `T`; [`Confluent`]`<Protobuf<T>>` tells them apart.
/// - As a key, `T` must not have `map` fields kept in a `HashMap`, which come in a random order; a `BTreeMap` will do.
#[derive(Debug)]
pub struct Protobuf<T>(PhantomData<T>, Infallible);

/// What Confluent's serializers write: a zero byte, the id that a schema registry has given to the schema, and the payload;
/// needs the feature `schema-registry`. `F` is [`Avro`]`<T>` or [`Protobuf`]`<T>`.
///
/// The schema's subject is the topic's name in the cluster with `-key` or `-value`. At the start the registry is asked for the
/// ids of all schemas that the stages write; ids that come up in records are asked for once.
///
/// A key's bytes hold the schema's id, so another version of the schema is another key: another partition and another
/// state. Keep keys free of it where you can.
#[derive(Debug)]
pub struct Confluent<F>(PhantomData<F>, Infallible);

/// What a codec has that is not compiled in.
#[allow(unused_macros, reason = "all may be compiled in")]
macro_rules! off {
    ($item:ty) => {
        type Item = $item;

        fn encode(_: &$item, _: &mut Vec<u8>) -> Result<(), crate::BoxError> {
            unreachable!("no topic has such a codec without its feature")
        }

        fn decode(_: &super::Bytes) -> Result<$item, crate::BoxError> {
            unreachable!("no topic has such a codec without its feature")
        }
    };
}

/// Never implemented: carries a message.
#[cfg(not(feature = "cbor"))]
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the codec `Cbor` needs the feature `cbor` of flechtwerk",
    label = "this codec is not compiled in",
    note = "add `\"cbor\"` to the `features` of flechtwerk in Cargo.toml"
)]
pub trait NeedsFeatureCbor: Send + 'static {}

#[cfg(not(feature = "cbor"))]
impl<T: NeedsFeatureCbor> super::Codec for Cbor<T> {
    off!(T);
}

/// Never implemented: carries a message.
#[cfg(not(feature = "avro"))]
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the codec `Avro` needs the feature `avro` of flechtwerk",
    label = "this codec is not compiled in",
    note = "add `\"avro\"` to the `features` of flechtwerk in Cargo.toml"
)]
pub trait NeedsFeatureAvro: Send + 'static {}

#[cfg(not(feature = "avro"))]
impl<T: NeedsFeatureAvro> super::Codec for Avro<T> {
    off!(T);
}

/// Never implemented: carries a message.
#[cfg(not(feature = "protobuf"))]
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the codec `Protobuf` needs the feature `protobuf` of flechtwerk",
    label = "this codec is not compiled in",
    note = "add `\"protobuf\"` to the `features` of flechtwerk in Cargo.toml"
)]
pub trait NeedsFeatureProtobuf: Send + 'static {}

#[cfg(not(feature = "protobuf"))]
impl<T: NeedsFeatureProtobuf> super::Codec for Protobuf<T> {
    off!(T);
}

/// Never implemented: carries a message.
#[cfg(not(feature = "schema-registry"))]
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the codec `Confluent` needs the feature `schema-registry` of flechtwerk",
    label = "this codec is not compiled in",
    note = "add `\"schema-registry\"` to the `features` of flechtwerk in Cargo.toml"
)]
pub trait NeedsFeatureSchemaRegistry: Send + 'static {}

#[cfg(not(feature = "schema-registry"))]
impl<F: NeedsFeatureSchemaRegistry> super::Codec for Confluent<F> {
    off!(F);
}
