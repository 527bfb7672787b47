//! CBOR (RFC 8949), strict in both directions.

use bytes::Bytes;
use ciborium::Value;
use ciborium::de::Error as Broken;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Cbor, Codec};
use crate::error::{BoxError, CodecError};

/// How deep values may be nested, as in JSON: what is deeper is refused before the stack ends.
const DEPTH: usize = 128;
const NAME: &str = "CBOR";

/// What can be the `T` of a `Cbor<T>`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be written as CBOR and read back",
    label = "lacks `Serialize` or `Deserialize`",
    note = "add `#[derive(Serialize, Deserialize)]` to `{Self}`, and see that every field has both; \
            a type that borrows, or that can't go to another thread, can't be used"
)]
pub trait CborItem: Serialize + DeserializeOwned + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> CborItem for T {}

impl<T: CborItem> Codec for Cbor<T> {
    type Item = T;

    fn encode(item: &T, into: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(ciborium::into_writer(item, into).map_err(|error| unwritten(error.to_string()))?)
    }

    fn decode(bytes: &Bytes) -> Result<T, BoxError> {
        let mut rest = &bytes[..];
        let item = ciborium::de::from_reader_with_recursion_limit(&mut rest, DEPTH);
        let item = item.map_err(|error| unread::<T>(&error))?;
        match rest {
            [] => Ok(item),
            _ => Err(malformed::<T>(format!("{} bytes follow the value", rest.len())).into()),
        }
    }

    fn encode_key(item: &T, into: &mut Vec<u8>) -> Result<(), BoxError> {
        let mut value = Value::serialized(item).map_err(|error| unwritten(error.to_string()))?;
        canonical(&mut value)?;
        Cbor::<Value>::encode(&value, into)
    }
}

/// The crate's own texts quote what they found, so only kind and place are kept.
fn unread<T>(error: &Broken<std::io::Error>) -> CodecError {
    malformed::<T>(match error {
        Broken::Io(_) => "the bytes end too early".into(),
        Broken::Syntax(at) => format!("a syntax error at byte {at}"),
        Broken::Semantic(Some(at), _) => {
            format!("a value of the wrong kind, or an unknown, missing or doubled field, at byte {at}")
        }
        Broken::Semantic(None, _) => {
            "a value of the wrong kind, or an unknown, missing or doubled field".into()
        }
        Broken::RecursionLimitExceeded => format!("nested deeper than {DEPTH}"),
    })
}

fn malformed<T>(what: String) -> CodecError {
    CodecError::Malformed { format: NAME, of: std::any::type_name::<T>(), what }
}

fn unwritten(why: String) -> CodecError {
    CodecError::Unwritten { format: NAME, why }
}

/// Gives equal values one form: the deterministic encoding of RFC 8949 (4.2.1), which the numbers have already, and no
/// negative zero.
fn canonical(value: &mut Value) -> Result<(), CodecError> {
    match value {
        Value::Float(number) if number.is_nan() => {
            return Err(unwritten("a key can't hold NaN, which is not even equal to itself".into()));
        }
        Value::Float(number) if *number == 0.0 => *number = 0.0,
        Value::Array(items) => items.iter_mut().try_for_each(canonical)?,
        Value::Tag(_, inner) => canonical(inner)?,
        Value::Map(entries) => {
            let mut sorted = Vec::with_capacity(entries.len());
            for (mut key, mut value) in std::mem::take(entries) {
                canonical(&mut key)?;
                canonical(&mut value)?;
                let mut bytes = Vec::new();
                ciborium::into_writer(&key, &mut bytes).map_err(|error| unwritten(error.to_string()))?;
                sorted.push((bytes, key, value));
            }
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            if sorted.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err(unwritten("a map has a key twice".into()));
            }
            entries.extend(sorted.into_iter().map(|(_, key, value)| (key, value)));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
