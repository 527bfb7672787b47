//! Avro whose schemas a registry holds: values are read by the schema that wrote them and brought into the form of ours.

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::schema::ResolvedSchema;
use apache_avro::schema_compatibility::SchemaCompatibility;
use bytes::Bytes;

use super::{AvroItem, Own, checked, malformed, skim::Skim};
use crate::codec::confluent::Registered;
use crate::codec::schema::{OwnSchema, RegisteredSchema};
use crate::codec::{Avro, Codec};
use crate::error::BoxError;
use crate::glue::RecordPart;

/// How values of one schema are read.
pub enum AvroPlan {
    /// The schema is ours.
    Own,
    /// It is another one.
    Other(Box<Other>),
}

/// See [`AvroPlan`].
pub struct Other {
    skim: Skim,
    /// Brings values into the form of our schema.
    reader: GenericDatumReader<'static>,
}

impl<T: AvroItem> Registered for Avro<T> {
    type Item = T;
    type Plan = AvroPlan;
    const KIND: &'static str = "AVRO";

    fn own(part: RecordPart) -> Result<OwnSchema, BoxError> {
        let own = Own::of::<T>()?;
        if part == RecordPart::Key && own.skim.has_map {
            return Err(super::map_in_key().into());
        }
        Ok(OwnSchema { text: serde_json::to_string(own.schema)?, behind_id: Vec::new() })
    }

    fn plan(schema: &RegisteredSchema) -> Result<AvroPlan, String> {
        let own = Own::of::<T>().map_err(|error| error.to_string())?;
        let written = parse(schema)?;
        if written.canonical_form() == own.schema.canonical_form() {
            return Ok(AvroPlan::Own);
        }
        SchemaCompatibility::can_read(&written, own.schema).map_err(|error| error.to_string())?;
        // As long as the process lives: there are as many as the registry has versions.
        let written: &'static Schema = Box::leak(Box::new(written));
        let text = |error: apache_avro::Error| error.to_string();
        let resolved = ResolvedSchema::new(written).map_err(text)?;
        let skim =
            Skim::new(written, resolved.get_names()).ok_or("it refers to a type that it does not hold")?;
        let reader = GenericDatumReader::builder(written).reader_schema(own.schema).build().map_err(text)?;
        Ok(AvroPlan::Other(Box::new(Other { skim, reader })))
    }

    fn same(schema: &RegisteredSchema) -> bool {
        let own = Own::of::<T>().map(|own| own.schema.canonical_form());
        own.ok() == parse(schema).map(|schema| schema.canonical_form()).ok()
    }

    fn write(item: &T, part: RecordPart, into: &mut Vec<u8>) -> Result<(), BoxError> {
        match part {
            RecordPart::Value => Avro::encode(item, into),
            RecordPart::Key => Avro::encode_key(item, into),
        }
    }

    fn read(plan: &AvroPlan, bytes: Bytes) -> Result<T, BoxError> {
        let own = Own::of::<T>()?;
        let other = match plan {
            AvroPlan::Own => return own.read(&bytes),
            AvroPlan::Other(other) => other,
        };
        checked::<T>(&other.skim, &bytes)?;
        let misfit = |_| malformed::<T>("a value that the type's schema does not take".into());
        let value = other.reader.read_value(&mut &bytes[..]).map_err(misfit)?;
        let mut ours = Vec::new();
        own.writer.write_value_ref(&mut ours, &value).map_err(misfit)?;
        own.read(&ours)
    }
}

/// The schema with all that it refers to.
fn parse(schema: &RegisteredSchema) -> Result<Schema, String> {
    let text = |error: apache_avro::Error| format!("the schema is none of Avro's: {error}");
    if schema.references.is_empty() {
        return Schema::parse_str(&schema.text).map_err(text);
    }
    let (mut schema, others) = Schema::parse_str_with_list(&schema.text, &schema.references).map_err(text)?;
    schema.denormalize(&others).map_err(text)?;
    Ok(schema)
}
