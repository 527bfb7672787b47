//! Integers of fixed size, as Kafka's own serializers write them.

use std::convert::Infallible;
use std::marker::PhantomData;

use bytes::Bytes;

use super::Codec;
use crate::error::{BoxError, CodecError};

/// An integer in big-endian bytes, two's complement: `BigEndian<u64>` has always eight.
///
/// `BigEndian<i64>` is what Kafka's `LongSerializer` writes, `BigEndian<i32>` its `IntegerSerializer`. All of `u8` to
/// `u128` and `i8` to `i128` can be used.
#[derive(Debug)]
pub struct BigEndian<N>(PhantomData<N>, Infallible);

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl Codec for BigEndian<$number> {
            type Item = $number;

            fn encode(item: &$number, into: &mut Vec<u8>) -> Result<(), BoxError> {
                into.extend_from_slice(&item.to_be_bytes());
                Ok(())
            }

            fn decode(bytes: &Bytes) -> Result<$number, BoxError> {
                match <[u8; size_of::<$number>()]>::try_from(&bytes[..]) {
                    Ok(bytes) => Ok(<$number>::from_be_bytes(bytes)),
                    Err(_) => Err(CodecError::Length {
                        number: stringify!($number),
                        expected: size_of::<$number>(),
                        found: bytes.len(),
                    }
                    .into()),
                }
            }
        }
    )* };
}

numbers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);
