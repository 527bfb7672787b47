//! Topics are Rust types.

use crate::codec::Codec;
use crate::error::BoxError;
use crate::glue::TopicInfo;
use crate::invalid::{Answer, Invalid};

/// A topic: a name and two codecs. Made by [`#[topic]`](macro@crate::topic); reading or writing a topic is only
/// possible through its type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a topic",
    label = "not a topic type",
    note = "a topic is a unit struct that says what it holds: `#[topic(\"name\", key = Utf8, value = Utf8)] pub struct {Self};`"
)]
pub trait Topic: Sized + Send + Sync + 'static {
    /// How keys are written.
    type KeyCodec: Codec;
    /// How values are written.
    type ValueCodec: Codec;
    /// The topic's name in Kafka, before any mapping at run time.
    const NAME: &'static str = Self::INFO.name;
    #[doc(hidden)]
    const INFO: &'static TopicInfo;
    /// See [`Row`](crate::Row).
    #[doc(hidden)]
    type Row: 'static;
    /// In a table, a record with an empty value deletes its key.
    #[doc(hidden)]
    const EMPTY_IS_DELETE: bool = false;
    /// Decides about records of a table that don't decode.
    #[doc(hidden)]
    const ON_INVALID: Option<fn(&Invalid<'_>) -> Answer> = None;
    /// [`Topic::row`] is a function of the user's, to be called no more than necessary.
    #[doc(hidden)]
    const ENRICHED: bool = false;
    /// Makes the row of a table.
    #[doc(hidden)]
    fn row(key: &Key<Self>, value: Value<Self>) -> Result<Self::Row, BoxError>;
}

/// The key of a topic's records: `Key<Words>` is a `String` if the key codec of `Words` is `Utf8`.
pub type Key<T> = <<T as Topic>::KeyCodec as Codec>::Item;

/// The value of a topic's records.
pub type Value<T> = <<T as Topic>::ValueCodec as Codec>::Item;
