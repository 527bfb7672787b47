//! Outputs: what a stage sends.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;

use crate::codec;
use crate::error::{BoxError, CodecError};
use crate::glue::{Cause, FailureKind, OutputRecord, Outputs, RawRecord, Trouble};
use crate::record::Headers;
use crate::topic::{Key, Topic, Value};

/// Encoded outputs that wait for the end of their bucket. Buffers are used again and again.
#[derive(Default)]
pub(crate) struct Buffer {
    encoded: Outputs,
    /// Bytes of headers, which are not part of `encoded.bytes`.
    header_bytes: usize,
}

/// Buffers that wait to be used again.
#[allow(clippy::vec_box, reason = "they go in and out of parameters, in their boxes")]
pub(crate) type Pool = Vec<Box<Buffer>>;

/// An output topic, as a parameter of a stage: `&mut Out<Counts>`.
///
/// What is sent leaves together with the record's state and offset, or not at all. Keyed records go to the partition
/// that Kafka's Java client would choose; the timestamp is the input record's. Use [`send_record`](Out::send_record) for
/// headers, another timestamp or an explicit partition.
///
/// In a test, `Out::default()` collects what is sent and [`sent`](Out::sent) returns it.
pub struct Out<T> {
    /// Made when it is needed. In a box, since the parameters of a bucket are moved from place to place.
    buffer: Option<Box<Buffer>>,
    output: u16,
    timestamp: i64,
    cause: Cause,
    /// The first record that could not be encoded.
    failure: Option<BoxError>,
    topic: PhantomData<fn() -> T>,
}

impl<T> Default for Out<T> {
    fn default() -> Self {
        Out::new(0, None)
    }
}

impl<T> fmt::Debug for Out<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Out({} records)", self.encoded().map_or(0, |encoded| encoded.records.len()))
    }
}

impl<T> Out<T> {
    /// Sends a record. It is encoded at once; one that can't be encoded fails the stage at the input record that is
    /// being processed, so there is nothing to check here.
    ///
    /// ```
    /// use flechtwerk::prelude::*;
    ///
    /// #[topic("counts", key = Utf8, value = Json<u64>)]
    /// pub struct Counts;
    ///
    /// let mut out = Out::<Counts>::default();
    /// out.send("a".into(), 1);
    /// assert_eq!(out.sent(), [("a".to_string(), 1)]);
    /// ```
    pub fn send(&mut self, key: Key<T>, value: Value<T>)
    where
        T: Topic,
    {
        self.push(&key, &value, Headers::default(), None, None);
    }

    /// Sends a record with more than key and value.
    ///
    /// ```
    /// # use flechtwerk::prelude::*;
    /// # #[topic("counts", key = Utf8, value = Json<u64>)]
    /// # pub struct Counts;
    /// let mut out = Out::<Counts>::default();
    /// out.send_record(OutRecord::new("a".into(), 1).header("source", b"test").timestamp(1_700_000_000_000).partition(3));
    /// assert_eq!(out.sent_records()[0].partition, Some(3));
    /// ```
    pub fn send_record(&mut self, record: OutRecord<T>)
    where
        T: Topic,
    {
        let OutRecord { key, value, headers, timestamp, partition } = record;
        self.push(&key, &value, headers, timestamp, partition);
    }

    /// Keys and values of all that was sent, for tests.
    ///
    /// # Panics
    ///
    /// If a record could not be encoded, or can't be decoded again.
    #[track_caller]
    pub fn sent(&self) -> Vec<(Key<T>, Value<T>)>
    where
        T: Topic,
    {
        self.sent_records().into_iter().map(|record| (record.key, record.value)).collect()
    }

    /// All that was sent, for tests. Timestamps are `None` where the stage set none.
    ///
    /// # Panics
    ///
    /// If a record could not be encoded, or can't be decoded again.
    #[track_caller]
    pub fn sent_records(&self) -> Vec<OutRecord<T>>
    where
        T: Topic,
    {
        if let Some(error) = &self.failure {
            panic!("a record for topic \"{}\" could not be encoded: {error}", T::NAME);
        }
        let Some(encoded) = self.encoded() else { return Vec::new() };
        encoded.records.iter().map(|record| self.decode(encoded, record)).collect()
    }

    fn encoded(&self) -> Option<&Outputs> {
        self.buffer.as_ref().map(|buffer| &buffer.encoded)
    }

    #[track_caller]
    fn decode(&self, encoded: &Outputs, record: &OutputRecord) -> OutRecord<T>
    where
        T: Topic,
    {
        match decode_output(encoded, record) {
            Ok(decoded) => decoded,
            Err(error) => panic!("a record sent to topic \"{}\" can't be decoded again: {error}", T::NAME),
        }
    }

    pub(crate) fn new(output: u16, buffer: Option<Box<Buffer>>) -> Self {
        let cause = Cause { input: 0, partition: 0, offset: 0 };
        Out { buffer, output, timestamp: -1, cause, failure: None, topic: PhantomData }
    }

    pub(crate) fn begin(&mut self, record: &RawRecord) {
        self.timestamp = record.timestamp;
        self.cause = record.at();
    }

    /// Bytes waiting here, or what could not be encoded.
    pub(crate) fn check(&mut self) -> Result<usize, Trouble> {
        match self.failure.take() {
            Some(error) => Err((FailureKind::Encode { output: self.output }, error)),
            None => {
                Ok(self.buffer.as_ref().map_or(0, |buffer| buffer.encoded.bytes.len() + buffer.header_bytes))
            }
        }
    }

    /// Moves what waits here to the end of `outputs`, and gives the empty buffer back.
    pub(crate) fn drain(&mut self, outputs: &mut Outputs) -> Option<Box<Buffer>> {
        let mut buffer = self.buffer.take()?;
        let start = outputs.bytes.len();
        outputs.bytes.append(&mut buffer.encoded.bytes);
        outputs.records.extend(buffer.encoded.records.drain(..).map(|mut record| {
            for range in [&mut record.key, &mut record.value].into_iter().flatten() {
                *range = range.start + start..range.end + start;
            }
            record
        }));
        buffer.header_bytes = 0;
        Some(buffer)
    }

    fn push(
        &mut self,
        key: &Key<T>,
        value: &Value<T>,
        headers: Headers,
        timestamp: Option<i64>,
        partition: Option<i32>,
    ) where
        T: Topic,
    {
        if self.failure.is_some() {
            return;
        }
        let buffer = self.buffer.get_or_insert_default();
        let bytes = &mut buffer.encoded.bytes;
        let start = bytes.len();
        let encoded = (|| -> Result<_, BoxError> {
            if timestamp.is_some_and(|timestamp| timestamp < 0) {
                return Err(CodecError::Setting("the timestamp is negative").into());
            }
            if partition.is_some_and(|partition| partition < 0) {
                return Err(CodecError::Setting("the partition is negative").into());
            }
            let key = codec::encode_key::<T>(key, bytes)?.then_some(start..bytes.len());
            let start = bytes.len();
            let value = codec::encode_value::<T>(value, bytes)?.then_some(start..bytes.len());
            Ok((key, value))
        })();
        match encoded {
            Ok((key, value)) => {
                buffer.header_bytes += headers.size();
                buffer.encoded.records.push(OutputRecord {
                    topic: self.output,
                    key,
                    value,
                    timestamp: timestamp.unwrap_or(self.timestamp),
                    partition,
                    headers,
                    cause: self.cause,
                });
            }
            Err(error) => {
                bytes.truncate(start);
                self.failure = Some(error);
            }
        }
    }
}

/// Decodes an output for tests.
pub(crate) fn decode_output<T: Topic>(
    outputs: &Outputs,
    record: &OutputRecord,
) -> Result<OutRecord<T>, BoxError> {
    let part = |range: &Option<std::ops::Range<usize>>| {
        range.as_ref().map(|range| Bytes::copy_from_slice(outputs.slice(range)))
    };
    Ok(OutRecord {
        key: codec::decode_key::<T>(part(&record.key).as_ref())?,
        value: codec::decode_value::<T>(part(&record.value).as_ref())?,
        headers: record.headers.clone(),
        timestamp: (record.timestamp >= 0).then_some(record.timestamp),
        partition: record.partition,
    })
}

/// A record to send, with more than key and value. See [`Out::send_record`].
#[non_exhaustive]
pub struct OutRecord<T: Topic> {
    /// The key.
    pub key: Key<T>,
    /// The value.
    pub value: Value<T>,
    /// The headers, in order.
    pub headers: Headers,
    /// Milliseconds since the epoch; `None`: the input record's.
    pub timestamp: Option<i64>,
    /// The partition; `None`: by the key.
    pub partition: Option<i32>,
}

impl<T: Topic> OutRecord<T> {
    /// A record with a key and a value.
    pub fn new(key: Key<T>, value: Value<T>) -> Self {
        OutRecord { key, value, headers: Headers::default(), timestamp: None, partition: None }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<Arc<str>>, value: impl AsRef<[u8]>) -> Self {
        self.headers.push(name, Some(Bytes::copy_from_slice(value.as_ref())));
        self
    }

    /// Takes over all headers of an input record, in front of those added later.
    pub fn headers(self, headers: Headers) -> Self {
        OutRecord { headers, ..self }
    }

    /// Sets the timestamp, in milliseconds since the epoch. A negative one fails the stage; 0 is written as 1, since the client takes
    /// it for the present time.
    pub fn timestamp(self, timestamp: i64) -> Self {
        OutRecord { timestamp: Some(timestamp), ..self }
    }

    /// Sets the partition. A negative one fails the stage; one that the topic does not have stops the process.
    pub fn partition(self, partition: i32) -> Self {
        OutRecord { partition: Some(partition), ..self }
    }
}

/// Shows what it is not secret: the payload is.
impl<T: Topic> fmt::Debug for OutRecord<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutRecord")
            .field("topic", &T::NAME)
            .field("headers", &self.headers)
            .field("timestamp", &self.timestamp)
            .field("partition", &self.partition)
            .finish_non_exhaustive()
    }
}
