//! Records that don't decode, and what a stage may decide about them.
//!
//! Without a word about it, a stage crashes at such a record: nothing of its batch counts, and the message says where it
//! lies. `on_invalid = path::to::function` hands the decision to a function, which is given the raw bytes, the place, the
//! part that did not decode and the error, and gives an [`Answer`]. Three functions are ready-made: [`crash`], [`skip`] and
//! [`dead_letter`].
//!
//! ```
//! use flechtwerk::invalid::{self, Answer, Invalid};
//! use flechtwerk::prelude::*;
//! use flechtwerk::testing::Driver;
//!
//! #[topic("amounts", key = Utf8, value = Json<u64>)]
//! pub struct Amounts;
//! #[topic("doubled", key = Utf8, value = Json<u64>)]
//! pub struct Doubled;
//! #[topic("amounts-dead", key = Nullable<Bytes>, value = Nullable<Bytes>)]
//! pub struct DeadAmounts;
//!
//! /// An empty amount is none at all; what else does not decode is looked at by people.
//! fn repair(record: &Invalid<'_>) -> Answer {
//!     match record.value_of::<Amounts>() {
//!         Some(amount) if amount.bytes().is_some_and(|bytes| bytes.is_empty()) => amount.instead(0),
//!         _ => Answer::DeadLetter,
//!     }
//! }
//!
//! #[transformer(inputs = [Amounts], on_invalid = repair, dead_letters = DeadAmounts)]
//! pub async fn double(amount: Record<Amounts>, out: &mut Out<Doubled>) -> flechtwerk::Result {
//!     out.send(amount.key, 2 * amount.value);
//!     Ok(())
//! }
//!
//! flechtwerk::pipeline!(pub DEMO = "demo": [double]);
//!
//! let mut driver = Driver::new(&DEMO);
//! driver.send_raw::<Amounts>(Some(b"ann"), Some(b"7"));
//! driver.send_raw::<Amounts>(Some(b"ann"), Some(b""));
//! driver.send_raw::<Amounts>(Some(b"ann"), Some(b"seven"));
//! driver.run_blocking()?;
//!
//! let doubled: Vec<_> = driver.read::<Doubled>().into_iter().map(|record| record.value).collect();
//! assert_eq!(doubled, [14, 0]);
//! let dead = driver.read::<DeadAmounts>();
//! assert_eq!(dead[0].value.as_deref(), Some(&b"seven"[..]));
//! assert_eq!(dead[0].headers.get(invalid::headers::PART).unwrap(), "value");
//! # Ok::<(), flechtwerk::testing::Failed>(())
//! ```

use std::fmt;

use bytes::Bytes;

pub use crate::glue::RecordPart;

use crate::codec;
use crate::error::BoxError;
use crate::glue::{RawRecord, TopicInfo};
use crate::record::Headers;
use crate::topic::{Topic, Value};

/// The headers that a dead letter has behind those of the record itself: where it came from, and why it is there. All are
/// text; a record without a timestamp has [`TIMESTAMP`](headers::TIMESTAMP) as null.
pub mod headers {
    /// The topic that the record was read from, by its name in the cluster.
    pub const TOPIC: &str = "flechtwerk.invalid.topic";
    /// The partition, as a decimal number.
    pub const PARTITION: &str = "flechtwerk.invalid.partition";
    /// The offset, as a decimal number.
    pub const OFFSET: &str = "flechtwerk.invalid.offset";
    /// The record's timestamp in milliseconds since the epoch, as a decimal number.
    pub const TIMESTAMP: &str = "flechtwerk.invalid.timestamp";
    /// What did not decode: `key` or `value`.
    pub const PART: &str = "flechtwerk.invalid.part";
    /// Why it did not, with the causes of the error.
    pub const ERROR: &str = "flechtwerk.invalid.error";
    /// The name of the stage.
    pub const STAGE: &str = "flechtwerk.invalid.stage";
}

/// A record that did not decode, as it was read.
pub struct Invalid<'a> {
    pub(crate) stage: &'static str,
    pub(crate) topic: &'static TopicInfo,
    pub(crate) raw: &'a RawRecord,
    pub(crate) part: RecordPart,
    pub(crate) error: &'a BoxError,
}

impl<'a> Invalid<'a> {
    /// The name of the stage that read it; of those that take a table, the first.
    pub fn stage(&self) -> &'static str {
        self.stage
    }

    /// The topic's name, before any mapping at run time, as [`Record::topic`](crate::Record::topic) has it.
    pub fn topic(&self) -> &'static str {
        self.topic.name
    }

    /// The partition it was read from.
    pub fn partition(&self) -> i32 {
        self.raw.partition
    }

    /// Its offset in the partition.
    pub fn offset(&self) -> i64 {
        self.raw.offset
    }

    /// Milliseconds since the epoch, `None` where the record has no timestamp.
    pub fn timestamp(&self) -> Option<i64> {
        (self.raw.timestamp >= 0).then_some(self.raw.timestamp)
    }

    /// What did not decode. A key is decoded first: if it is the key, nothing is known of the value.
    pub fn part(&self) -> RecordPart {
        self.part
    }

    /// The bytes of the key, `None` for null.
    pub fn key(&self) -> Option<&'a Bytes> {
        self.raw.key.as_ref()
    }

    /// The bytes of the value, `None` for null.
    pub fn value(&self) -> Option<&'a Bytes> {
        self.raw.value.as_ref()
    }

    /// The headers, in order.
    pub fn headers(&self) -> &'a Headers {
        &self.raw.headers
    }

    /// Why it did not decode, as the codec says.
    pub fn error(&self) -> &'a (dyn std::error::Error + Send + Sync + 'static) {
        &**self.error
    }

    /// The way to another value: `Some` if the record is one of topic `T` and it is the value that did not decode. A key
    /// can't be replaced, since it says whose record this is.
    pub fn value_of<T: Topic>(&self) -> Option<InvalidValue<'a, T>> {
        let mine = self.part == RecordPart::Value && self.topic.id == T::INFO.id;
        mine.then_some(InvalidValue { raw: self.raw, topic: std::marker::PhantomData })
    }
}

/// Shows where it lies and which part it is, not what it holds.
impl fmt::Debug for Invalid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} offset {}: {}", self.topic(), self.partition(), self.offset(), self.part.name())
    }
}

/// The value of a record of topic `T`, which did not decode. See [`Invalid::value_of`].
pub struct InvalidValue<'a, T> {
    raw: &'a RawRecord,
    topic: std::marker::PhantomData<fn() -> T>,
}

impl<'a, T: Topic> InvalidValue<'a, T> {
    /// Its bytes, `None` for null.
    pub fn bytes(&self) -> Option<&'a Bytes> {
        self.raw.value.as_ref()
    }

    /// The record is processed with this value, as if the topic held it: it is encoded and decoded by the topic's codec, so
    /// that what the codec leaves out is left out.
    pub fn instead(self, value: Value<T>) -> Answer {
        let mut bytes = Vec::new();
        let written = codec::encode_value::<T>(&value, &mut bytes);
        let value = written.map(|written| written.then(|| bytes.into()));
        Answer::Instead(Instead {
            topic: T::INFO.id,
            partition: self.raw.partition,
            offset: self.raw.offset,
            value,
        })
    }
}

impl<T> fmt::Debug for InvalidValue<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InvalidValue")
    }
}

/// What is to become of a record that did not decode.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The process stops, with the message that it would have given without a function. Nothing of the batch counts.
    Crash,
    /// The record is left out. Its offset is committed with those of its batch.
    Skip,
    /// The record goes to the topic that the attribute names as `dead_letters`, with its key, value, headers and timestamp
    /// as they were and the [`headers`] that say where it came from. It is part of the transaction that commits its offset.
    DeadLetter,
    /// The record is processed with another value. Only [`InvalidValue::instead`] makes this.
    Instead(Instead),
}

/// The other value in an [`Answer`], for one certain record.
pub struct Instead {
    pub(crate) topic: &'static str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) value: Result<Option<Bytes>, BoxError>,
}

impl fmt::Debug for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instead({}/{} offset {})", self.topic, self.partition, self.offset)
    }
}

/// The answer of a function that knows no other than [`Answer::DeadLetter`]. A stage that names such a function without
/// saying `dead_letters` does not compile; with an `Answer` this shows only at the first such record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetter;

impl From<DeadLetter> for Answer {
    fn from(_: DeadLetter) -> Answer {
        Answer::DeadLetter
    }
}

/// Stops the process, as without a function: for a stage that wants to say so.
pub fn crash(_: &Invalid<'_>) -> Answer {
    Answer::Crash
}

/// Leaves the record out.
pub fn skip(_: &Invalid<'_>) -> Answer {
    Answer::Skip
}

/// Sends the record to the topic that the attribute names as `dead_letters`.
pub fn dead_letter(_: &Invalid<'_>) -> DeadLetter {
    DeadLetter
}
