//! Avro, by the schemas that the types have. What it means for a value to be of a schema is the Avro library's; what bytes
//! may be handed to it is [`skim`]'s.

#[cfg(feature = "schema-registry")]
mod registered;
mod skim;

use std::any::{TypeId, type_name};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::schema::ResolvedSchema;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use apache_avro::{AvroSchema, Schema};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::skim::Skim;
use super::{Avro, Codec};
use crate::error::{BoxError, CodecError};

const NAME: &str = "Avro";

/// What can be the `T` of an `Avro<T>`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be written as Avro and read back",
    label = "lacks `Serialize`, `Deserialize` or `AvroSchema`",
    note = "add `#[derive(Serialize, Deserialize, AvroSchema)]` to `{Self}`, and see that every field has all three; \
            `AvroSchema` is of the crate `apache-avro`, version 0.22, with its feature `derive`; where the schema is a file, \
            implement it with `Schema::parse_str(include_str!(..))`"
)]
pub trait AvroItem: Serialize + DeserializeOwned + AvroSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + AvroSchema + Send + 'static> AvroItem for T {}

impl<T: AvroItem> Codec for Avro<T> {
    type Item = T;

    fn encode(item: &T, into: &mut Vec<u8>) -> Result<(), BoxError> {
        let own = Own::of::<T>()?;
        own.writer.write_ser(into, item).map_err(|_| misfit::<T>())?;
        Ok(())
    }

    fn decode(bytes: &Bytes) -> Result<T, BoxError> {
        let own = Own::of::<T>()?;
        own.read(bytes)
    }

    fn encode_key(item: &T, into: &mut Vec<u8>) -> Result<(), BoxError> {
        let own = Own::of::<T>()?;
        if own.skim.has_map {
            return Err(map_in_key().into());
        }
        let begin = into.len();
        Self::encode(item, into)?;
        if own.skim.has_float {
            let mut value = own.reader.read_value(&mut &into[begin..]).map_err(|_| misfit::<T>())?;
            canonical(&mut value)?;
            into.truncate(begin);
            own.writer.write_value_ref(into, &value).map_err(|_| misfit::<T>())?;
        }
        Ok(())
    }
}

/// The schema of a type, ready for use. Made once, and kept as long as the process lives.
struct Own {
    #[cfg_attr(not(feature = "schema-registry"), allow(dead_code, reason = "only a registry gets it"))]
    schema: &'static Schema,
    writer: GenericDatumWriter<'static>,
    reader: GenericDatumReader<'static>,
    skim: Skim,
}

/// By type; where the schema is wrong, what is wrong with it.
static OWN: RwLock<Option<HashMap<TypeId, Result<&'static Own, String>>>> = RwLock::new(None);

impl Own {
    fn of<T: AvroItem>() -> Result<&'static Own, BoxError> {
        let id = TypeId::of::<T>();
        let known = OWN.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.as_ref().and_then(|known| known.get(&id)).cloned();
        drop(known);
        let made = found.unwrap_or_else(|| {
            let made = Own::make(T::get_schema()).map(|own| &*Box::leak(Box::new(own)));
            let mut known = OWN.write().unwrap_or_else(PoisonError::into_inner);
            known.get_or_insert_default().entry(id).or_insert(made).clone()
        });
        made.map_err(|error| {
            unwritten(format!("the schema that `{}` says is wrong: {error}", type_name::<T>())).into()
        })
    }

    fn make(schema: Schema) -> Result<Own, String> {
        let schema: &'static Schema = Box::leak(Box::new(schema));
        let text = |error: apache_avro::Error| error.to_string();
        let resolved = ResolvedSchema::new(schema).map_err(text)?;
        let skim = Skim::new(schema, resolved.get_names())
            .ok_or_else(|| "it refers to a type that it does not hold".to_owned())?;
        let writer = GenericDatumWriter::builder(schema).human_readable(false).build().map_err(text)?;
        let reader = GenericDatumReader::builder(schema).human_readable(false).build().map_err(text)?;
        Ok(Own { schema, writer, reader, skim })
    }

    /// A value that was written by this schema.
    fn read<T: AvroItem>(&self, bytes: &[u8]) -> Result<T, BoxError> {
        checked::<T>(&self.skim, bytes)?;
        // The library's own texts quote what they found.
        let read = self.reader.read_deser(&mut &*bytes);
        Ok(read.map_err(|_| malformed::<T>("a value that the type does not take".into()))?)
    }
}

fn checked<T>(skim: &Skim, bytes: &[u8]) -> Result<(), CodecError> {
    skim.check(bytes).map_err(|broken| malformed::<T>(format!("{} (at byte {})", broken.what, broken.at)))
}

fn malformed<T>(what: String) -> CodecError {
    CodecError::Malformed { format: NAME, of: type_name::<T>(), what }
}

fn unwritten(why: String) -> CodecError {
    CodecError::Unwritten { format: NAME, why }
}

fn misfit<T>() -> CodecError {
    unwritten(format!(
        "it does not fit the schema of `{}`; see that its `Serialize` and its `AvroSchema` say the same",
        type_name::<T>()
    ))
}

/// Gives equal values one form.
fn canonical(value: &mut Value) -> Result<(), CodecError> {
    match value {
        Value::Float(number) if number.is_nan() => Err(nan()),
        Value::Double(number) if number.is_nan() => Err(nan()),
        Value::Float(number) if *number == 0.0 => {
            *number = 0.0;
            Ok(())
        }
        Value::Double(number) if *number == 0.0 => {
            *number = 0.0;
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(canonical),
        Value::Record(fields) => fields.iter_mut().try_for_each(|(_, value)| canonical(value)),
        Value::Union(_, inner) => canonical(inner),
        _ => Ok(()),
    }
}

fn map_in_key() -> CodecError {
    unwritten("a key can't hold a map: its entries may come in any order".into())
}

fn nan() -> CodecError {
    unwritten("a key can't hold NaN, which is not even equal to itself".into())
}

#[cfg(test)]
mod tests;
