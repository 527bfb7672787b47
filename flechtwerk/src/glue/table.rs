//! A table behind an object: raw records in, versions out.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use super::runner::caught;
use super::{FailureKind, RawRecord, RecordPart, Settled, TopicInfo, Trouble, policy};
use crate::codec;
use crate::error::BoxError;
use crate::table::{Rows, TableTopic};
use crate::topic::{Key, Topic, Value};

/// A table, as a constant.
#[derive(Clone, Copy, Debug)]
pub struct TableInfo {
    /// Its topic.
    pub topic: &'static TopicInfo,
    /// Makes one that is empty.
    pub make: fn() -> Box<dyn AnyTable>,
}

/// A record that a table can't take.
#[derive(Debug)]
pub struct Refused {
    /// Where it lies.
    pub partition: i32,
    /// See `partition`.
    pub offset: i64,
    /// What is wrong with it.
    pub trouble: Trouble,
}

/// A table that is being filled.
pub trait AnyTable: Send {
    /// Takes a record, for this stage and maybe others. It shows with the next [`AnyTable::publish`], unless another one of
    /// its key comes before. The answer says what became of it if it did not decode.
    fn take(&mut self, record: &RawRecord, stage: &'static str) -> Result<Option<Settled>, Trouble>;
    /// Makes a version of what was taken.
    fn publish(&mut self) -> Result<(), Refused>;
    /// The last version, as it goes into an [`super::Env`].
    fn version(&self) -> Arc<dyn Any + Send + Sync>;
    /// Keys of the last version.
    fn keys(&self) -> usize;
    /// Bytes of its keys and values.
    fn bytes(&self) -> usize;
}

/// Makes an empty table.
pub fn table<T: TableTopic>() -> Box<dyn AnyTable> {
    Box::new(Filling::<T> { rows: Rows::new(), pending: HashMap::default(), published: Rows::new() })
}

struct Filling<T: TableTopic> {
    rows: Rows<T>,
    /// Where rows are made by an `enrich`: the last record of each key since the last version. A value which was replaced
    /// meanwhile costs no call.
    pending: HashMap<Key<T>, Pending<Value<T>>>,
    published: Rows<T>,
}

struct Pending<V> {
    /// `None` deletes the key.
    value: Option<V>,
    bytes: usize,
    partition: i32,
    offset: i64,
}

impl<T: TableTopic> Filling<T> {
    fn put(&mut self, record: &RawRecord, key: Key<T>, value: Option<Value<T>>) -> Result<(), Trouble> {
        let (bytes, partition, offset) = (record.size(), record.partition, record.offset);
        if T::ENRICHED {
            self.pending.insert(key, Pending { value, bytes, partition, offset });
            return Ok(());
        }
        self.rows.put(key, value, bytes)
    }
}

/// Key and value of a record; no value deletes the key.
fn decode<T: TableTopic>(record: &RawRecord) -> Result<(Key<T>, Option<Value<T>>), Trouble> {
    // The bytes of many records share one buffer, which a row made of such bytes would keep alive for all of them.
    let own = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
    let key = record.key.as_ref().map(own);
    let key = caught(|| {
        codec::decode_key::<T>(key.as_ref()).map_err(|error| codec::trouble(RecordPart::Key, error))
    })?;
    let value = match &record.value {
        None => None,
        Some(value) if value.is_empty() && T::EMPTY_IS_DELETE => None,
        Some(value) => Some(caught(|| {
            codec::decode_value::<T>(Some(&own(value)))
                .map_err(|error| codec::trouble(RecordPart::Value, error))
        })?),
    };
    Ok((key, value))
}

impl<T: TableTopic> AnyTable for Filling<T> {
    fn take(&mut self, record: &RawRecord, stage: &'static str) -> Result<Option<Settled>, Trouble> {
        let (part, error, decide) = match (decode::<T>(record), T::ON_INVALID) {
            (Ok((key, value)), _) => return self.put(record, key, value).map(|()| None),
            (Err((FailureKind::Decode(part), error)), Some(decide)) => (part, error, decide),
            (Err(trouble), _) => return Err(trouble),
        };
        let Some(instead) = policy::of_table::<T>(decide, record, stage, part, error)? else {
            return Ok(Some(Settled::Skip));
        };
        let (key, value) = decode::<T>(&instead).or_else(|(_, error)| policy::not_read_back(part, &error))?;
        self.put(&instead, key, value).map(|()| Some(Settled::Instead))
    }

    fn publish(&mut self) -> Result<(), Refused> {
        for (key, Pending { value, bytes, partition, offset }) in self.pending.drain() {
            self.rows.put(key, value, bytes).map_err(|trouble| Refused { partition, offset, trouble })?;
        }
        self.published = self.rows.clone();
        Ok(())
    }

    fn version(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::new(self.published.clone())
    }

    fn keys(&self) -> usize {
        self.published.len()
    }

    fn bytes(&self) -> usize {
        self.published.bytes()
    }
}

impl<T: TableTopic> Rows<T> {
    /// Takes a record; one without a value deletes.
    fn put(&mut self, key: Key<T>, value: Option<Value<T>>, bytes: usize) -> Result<(), Trouble> {
        match value {
            None => self.remove(&key),
            Some(value) => {
                let row = caught(|| T::row(&key, value).map_err(|error| (FailureKind::User, error)))?;
                self.insert(key, row, bytes);
            }
        }
        Ok(())
    }
}

/// A function that makes rows of a topic's values.
#[diagnostic::on_unimplemented(
    message = "this can't be the `enrich` of topic `{T}`",
    label = "not a function from a key and a value to a row",
    note = "write `fn name(key: &Key<{T}>, value: Value<{T}>) -> flechtwerk::Result<R>`, with the `R` that `row = R` names"
)]
pub trait EnrichFn<T: Topic> {
    fn enrich(&self, key: &Key<T>, value: Value<T>) -> Result<T::Row, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<T: Topic, F, E> EnrichFn<T> for F
where
    F: Fn(&Key<T>, Value<T>) -> Result<T::Row, E>,
    E: Into<BoxError>,
{
    fn enrich(&self, key: &Key<T>, value: Value<T>) -> Result<T::Row, BoxError> {
        self(key, value).map_err(Into::into)
    }
}

/// Makes a row.
pub fn enrich<T: Topic, F: EnrichFn<T>>(
    function: F,
    key: &Key<T>,
    value: Value<T>,
) -> Result<T::Row, BoxError> {
    function.enrich(key, value)
}

#[cfg(test)]
mod tests;
