//! What a stage's function and a codec may return. User code brings its own error types; nothing here forces one
//! upon it.

/// Any error of a user's code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a stage's function returns: `Ok(())` when it is done with its record.
///
/// Every error type that goes into a `Box<dyn Error + Send + Sync>` will do, so `?` works on nearly everything. An
/// error stops the process: nothing of the record's batch is committed, and whoever takes over reads it again.
///
/// The prelude does not bring this name, so that `Result` keeps its usual meaning.
pub type Result<T = (), E = BoxError> = core::result::Result<T, E>;

/// What [`Codec`](crate::codec::Codec)s of this crate return. Never holds bytes of the payload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes are no UTF-8.
    #[error("not valid UTF-8 ({valid} bytes of it are)")]
    Utf8 {
        /// How many bytes at the front are valid.
        valid: usize,
    },
    /// A number of fixed size has another size.
    #[error("a `{number}` has {expected} bytes, this has {found}")]
    Length {
        /// The type of the number.
        number: &'static str,
        /// Its size.
        expected: usize,
        /// The size found.
        found: usize,
    },
    /// Null where the topic's type allows none.
    #[error("null, and the topic's codec is not `Nullable`")]
    Null,
    /// The JSON is malformed, or not a value of the type.
    #[error("{what} (line {line}, column {column}), expected JSON of a `{of}`")]
    Json {
        /// What is wrong, without any of the text itself.
        what: &'static str,
        /// The Rust type.
        of: &'static str,
        /// Where, counted from 1.
        line: usize,
        /// Where, counted from 1.
        column: usize,
    },
    /// The value can't be written as JSON.
    #[error("can't be written as JSON: {0}")]
    NotJson(String),
    /// The bytes are not of this format, or not a value of the type.
    #[error("{what}, expected {format} of a `{of}`")]
    Malformed {
        /// `CBOR`, `Avro`, `Protobuf`.
        format: &'static str,
        /// The Rust type.
        of: &'static str,
        /// What is wrong, without any of the bytes.
        what: String,
    },
    /// The value can't be written in this format.
    #[error("can't be written as {format}: {why}")]
    Unwritten {
        /// `CBOR`, `Avro`, `Protobuf`.
        format: &'static str,
        /// What keeps from it.
        why: String,
    },
    /// An output record's setting makes no sense.
    #[error("{0}")]
    Setting(&'static str),
}
