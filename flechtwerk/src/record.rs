//! Records and what they carry beside key and value.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::codec;
use crate::glue::{RawRecord, RecordPart, Trouble};
use crate::topic::{Key, Topic, Value};

/// One header of a record.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name; names may repeat.
    pub name: Arc<str>,
    /// Its value, `None` for null.
    pub value: Option<Bytes>,
}

/// Shows the size of the value, not the value: it is payload.
impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{:?}: {} bytes", self.name, value.len()),
            None => write!(f, "{:?}: null", self.name),
        }
    }
}

/// The headers of a record, in order. Empty ones cost nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Option<Arc<Vec<Header>>>);

impl Headers {
    /// The headers, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Header> {
        self.0.iter().flat_map(|headers| headers.iter())
    }

    /// Adds one at the end.
    pub fn push(&mut self, name: impl Into<Arc<str>>, value: Option<Bytes>) {
        Arc::make_mut(self.0.get_or_insert_default()).push(Header { name: name.into(), value });
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |headers| headers.len())
    }

    /// The value of the last header of this name, as Kafka's own `lastHeader` picks it. `None` if there is no such
    /// header or it is null.
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        let last =
            self.0.iter().flat_map(|headers| headers.iter().rev()).find(|header| &*header.name == name);
        last.and_then(|header| header.value.as_ref())
    }

    /// Bytes of names and values.
    pub(crate) fn size(&self) -> usize {
        self.iter().map(|header| header.name.len() + header.value.as_ref().map_or(0, Bytes::len)).sum()
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One record of a topic, decoded.
///
/// ```
/// use flechtwerk::prelude::*;
///
/// #[topic("words", key = Utf8, value = Utf8)]
/// pub struct Words;
///
/// let word = Record::<Words>::new("a".into(), "x".into()).with_offset(7).with_header("source", "test");
/// assert_eq!((&*word.key, word.offset, word.topic()), ("a", 7, "words"));
/// assert_eq!(word.headers.get("source").unwrap(), "test");
/// ```
#[non_exhaustive]
pub struct Record<T: Topic> {
    /// The key.
    pub key: Key<T>,
    /// The value.
    pub value: Value<T>,
    /// The headers, in order; mostly none.
    pub headers: Headers,
    /// Milliseconds since the epoch, `None` where the record has no timestamp.
    pub timestamp: Option<i64>,
    /// The partition it was read from.
    pub partition: i32,
    /// Its offset in the partition.
    pub offset: i64,
}

impl<T: Topic> Record<T> {
    /// A record as a test needs it: partition 0, offset 0, no timestamp, no headers.
    pub fn new(key: Key<T>, value: Value<T>) -> Self {
        Record { key, value, headers: Headers::default(), timestamp: None, partition: 0, offset: 0 }
    }

    /// Sets the timestamp, in milliseconds since the epoch.
    pub fn with_timestamp(self, timestamp: i64) -> Self {
        Record { timestamp: Some(timestamp), ..self }
    }

    /// Sets the partition.
    pub fn with_partition(self, partition: i32) -> Self {
        Record { partition, ..self }
    }

    /// Sets the offset.
    pub fn with_offset(self, offset: i64) -> Self {
        Record { offset, ..self }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: impl Into<Arc<str>>, value: impl AsRef<[u8]>) -> Self {
        self.headers.push(name, Some(Bytes::copy_from_slice(value.as_ref())));
        self
    }

    /// The topic's name, before any mapping at run time: the same as `T::NAME`.
    pub fn topic(&self) -> &'static str {
        T::NAME
    }

    pub(crate) fn decode(raw: &RawRecord) -> Result<Self, Trouble> {
        Ok(Record {
            key: codec::decode_key::<T>(raw.key.as_ref())
                .map_err(|error| codec::trouble(RecordPart::Key, error))?,
            value: codec::decode_value::<T>(raw.value.as_ref())
                .map_err(|error| codec::trouble(RecordPart::Value, error))?,
            headers: raw.headers.clone(),
            timestamp: (raw.timestamp >= 0).then_some(raw.timestamp),
            partition: raw.partition,
            offset: raw.offset,
        })
    }
}

impl<T: Topic> Clone for Record<T>
where
    Key<T>: Clone,
    Value<T>: Clone,
{
    fn clone(&self) -> Self {
        Record {
            key: self.key.clone(),
            value: self.value.clone(),
            headers: self.headers.clone(),
            timestamp: self.timestamp,
            partition: self.partition,
            offset: self.offset,
        }
    }
}

/// Shows where the record lies, not what it holds: payloads don't belong in logs.
impl<T: Topic> fmt::Debug for Record<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} offset {}", T::NAME, self.partition, self.offset)
    }
}
