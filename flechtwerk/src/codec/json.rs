//! JSON, strict in both directions.

use std::convert::Infallible;
use std::marker::PhantomData;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::{Codec, Keys, write_json};
use crate::error::{BoxError, CodecError};

/// JSON of any `T` with `#[derive(Serialize, Deserialize)]`.
///
/// - Trailing data after the value is an error, as is all that `T`'s `Deserialize` refuses.
/// - NaN and infinity are no JSON: encoding them is an error, in keys as in values.
/// - As a key it is canonical: no spaces, object keys sorted by their bytes, no negative zero. So equal keys are equal
///   bytes, unless `T` itself iterates in a random order, as a `HashSet` does.
///
/// ```
/// use flechtwerk::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// pub struct Route {
///     to: String,
///     from: String,
/// }
///
/// let mut bytes = Vec::new();
/// Json::encode_key(&Route { to: "TXL".into(), from: "HAM".into() }, &mut bytes)?;
/// assert_eq!(bytes, br#"{"from":"HAM","to":"TXL"}"#);
/// # flechtwerk::Result::<()>::Ok(())
/// ```
#[derive(Debug)]
pub struct Json<T>(PhantomData<T>, Infallible);

/// What can be the `T` of a `Json<T>`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be written as JSON and read back",
    label = "lacks `Serialize` or `Deserialize`",
    note = "add `#[derive(Serialize, Deserialize)]` to `{Self}`, and see that every field has both; \
            a type that borrows, or that can't go to another thread, can't be used"
)]
pub trait JsonItem: Serialize + DeserializeOwned + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> JsonItem for T {}

impl<T: JsonItem> Codec for Json<T> {
    type Item = T;

    fn encode(item: &T, into: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(write_json(item, Keys::AsWritten, into)?)
    }

    fn decode(bytes: &Bytes) -> Result<T, BoxError> {
        Ok(read(bytes)?)
    }

    fn encode_key(item: &T, into: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(write_json(item, Keys::Sorted, into)?)
    }
}

/// Reads a value from all of `bytes`. serde_json's own messages quote the text, so only their kind and place are kept.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    serde_json::from_slice(bytes).map_err(|error| CodecError::Json {
        what: match error.classify() {
            Category::Eof => "the text ends too early",
            Category::Data => "a value of the wrong kind, or an unknown, missing or doubled field",
            Category::Syntax | Category::Io => "a syntax error",
        },
        of: std::any::type_name::<T>(),
        line: error.line(),
        column: error.column(),
    })
}
