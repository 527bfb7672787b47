//! Schemas that a registry holds: what the checks at the start need to know of them, whichever format they are of. Which
//! codecs have any is up to the features; that some may have is not.

use crate::error::BoxError;
use crate::glue::{RecordPart, TopicInfo};

/// Which part of which topic a codec works on.
#[derive(Clone, Copy, Debug)]
pub struct Of {
    /// The topic.
    pub topic: &'static TopicInfo,
    /// Its keys or its values.
    pub part: RecordPart,
}

/// The schema of a codec that writes no more than its id.
#[derive(Clone, Copy, Debug)]
pub struct SchemaInfo {
    /// As registries call it: `AVRO`, `PROTOBUF`.
    pub kind: &'static str,
    /// The Rust type.
    pub type_name: fn() -> &'static str,
    /// The schema that is written.
    pub own: fn(RecordPart) -> Result<OwnSchema, BoxError>,
    /// Whether what was written by a schema can be read; why not.
    pub readable: fn(&RegisteredSchema) -> Result<(), String>,
    /// Whether a schema is but another spelling of our own.
    pub same: fn(&RegisteredSchema) -> bool,
}

/// The schema of a Rust type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnSchema {
    /// The schema itself.
    pub text: String,
    /// What stands between the id and the value.
    pub behind_id: Vec<u8>,
}

/// A schema as a registry gives it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredSchema {
    /// `None` where the registry does not say, which mostly means `AVRO`.
    pub kind: Option<String>,
    /// The schema itself.
    pub text: String,
    /// The schemas that it refers to, and those that they refer to.
    pub references: Vec<String>,
}
