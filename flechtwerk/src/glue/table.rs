//! A table behind an object: raw records in, versions out.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use super::runner::caught;
use super::whole::{Broken, Deleted, Refused, Written};
use super::{Cause, FailureKind, RawRecord, RecordPart, Settled, TopicInfo, Trouble, policy};
use crate::codec;
use crate::error::BoxError;
use crate::table::{Rows, TableTopic};
use crate::topic::{Key, Topic, Value};

/// A table, as a constant.
#[derive(Clone, Copy, Debug)]
pub struct TableInfo {
    /// Its topic.
    pub topic: &'static TopicInfo,
    /// Makes one that is empty, of so many partitions.
    pub make: fn(partitions: i32) -> Box<dyn AnyTable>,
}

/// A table that is being filled.
pub trait AnyTable: Send {
    /// Takes a record, for this stage and maybe others. It shows with the next [`AnyTable::publish`], unless another one of
    /// its key comes before; one that is older than what another partition has of its key is left out. The answer says what became
    /// of it if it did not decode and that did not matter.
    fn take(&mut self, record: &RawRecord, stage: &'static str) -> Option<Settled>;
    /// Makes a version of what was taken. It is refused if the last record of a key could not be taken (S9.2).
    fn publish(&mut self) -> Result<(), Refused>;
    /// The last version, as it goes into an [`super::Env`].
    fn version(&self) -> Arc<dyn Any + Send + Sync>;
    /// Keys of the last version.
    fn keys(&self) -> usize;
    /// Bytes of its keys and values.
    fn bytes(&self) -> usize;
}

/// Makes an empty table.
pub fn table<T: TableTopic>(partitions: i32) -> Box<dyn AnyTable> {
    Box::new(Filling::<T> {
        rows: Rows::new(),
        pending: HashMap::default(),
        published: Rows::new(),
        broken: Broken::default(),
        deleted: Deleted::new(partitions),
    })
}

struct Filling<T: TableTopic> {
    rows: Rows<T>,
    /// Where rows are made by an `enrich`: the last record of each key since the last version. A value which was replaced
    /// meanwhile costs no call.
    pending: HashMap<Key<T>, Pending<Value<T>>>,
    published: Rows<T>,
    /// By the bytes of the key, which may be what does not decode.
    broken: Broken<Option<Bytes>>,
    /// By the same.
    deleted: Deleted<Option<Bytes>>,
}

struct Pending<V> {
    /// `None` deletes the key.
    value: Option<V>,
    bytes: usize,
    at: Cause,
    written: Written,
}

impl<T: TableTopic> Filling<T> {
    fn put(
        &mut self,
        record: &RawRecord,
        written: Written,
        key: Key<T>,
        value: Option<Value<T>>,
    ) -> Result<(), Trouble> {
        match value {
            None => self.deleted.insert(|| record.key.as_ref().map(own), written),
            Some(_) => self.deleted.remove(&record.key),
        }
        let (bytes, at) = (record.size(), record.at());
        if T::ENRICHED {
            self.pending.insert(key, Pending { value, bytes, at, written });
            return Ok(());
        }
        self.rows.put(key, value, bytes, written)
    }

    /// When the key of a record was written last before; its key, if it decodes.
    fn written(&self, record: &RawRecord, key: Option<&Key<T>>) -> Option<Written> {
        // What does not decode came behind what there is of the key.
        let broken = self.broken.written(&record.key);
        let pending = || key.and_then(|key| self.pending.get(key)).map(|pending| pending.written);
        let row = || key.and_then(|key| self.rows.written(key));
        broken.or_else(pending).or_else(row).or_else(|| self.deleted.written(&record.key))
    }

    fn try_take(
        &mut self,
        record: &RawRecord,
        written: Written,
        key: Result<Key<T>, Trouble>,
        stage: &'static str,
    ) -> Result<Option<Settled>, Trouble> {
        let decoded = key.and_then(|key| Ok((key, decode_value::<T>(record)?)));
        let (part, error, decide) = match (decoded, T::ON_INVALID) {
            (Ok((key, value)), _) => return self.put(record, written, key, value).map(|()| None),
            // There is no row of a key that does not decode, so nothing is left to delete.
            (Err((FailureKind::Decode(RecordPart::Key), _)), _) if deletes::<T>(record) => {
                self.deleted.insert(|| record.key.as_ref().map(own), written);
                return Ok(None);
            }
            (Err((FailureKind::Decode(part), error)), Some(decide)) => (part, error, decide),
            (Err(trouble), _) => return Err(trouble),
        };
        let Some(instead) = policy::of_topic::<T>(decide, record, stage, part, error)? else {
            return Ok(Some(Settled::Skip));
        };
        let (key, value) = decode_key::<T>(&instead)
            .and_then(|key| Ok((key, decode_value::<T>(&instead)?)))
            .or_else(|(_, error)| policy::not_read_back(part, &error))?;
        self.put(&instead, written, key, value).map(|()| Some(Settled::Instead))
    }
}

/// A record that deletes its key.
fn deletes<T: TableTopic>(record: &RawRecord) -> bool {
    record.value.as_ref().is_none_or(|value| value.is_empty() && T::EMPTY_IS_DELETE)
}

/// The bytes of many records share one buffer, which a row made of such bytes would keep alive for all of them.
fn own(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn decode_key<T: TableTopic>(record: &RawRecord) -> Result<Key<T>, Trouble> {
    let key = record.key.as_ref().map(own);
    caught(|| codec::decode_key::<T>(key.as_ref()).map_err(|error| codec::trouble(RecordPart::Key, error)))
}

/// No value deletes the key.
fn decode_value<T: TableTopic>(record: &RawRecord) -> Result<Option<Value<T>>, Trouble> {
    let value = record.value.as_ref().filter(|_| !deletes::<T>(record));
    let decode = |value| {
        caught(|| {
            codec::decode_value::<T>(Some(&own(value)))
                .map_err(|error| codec::trouble(RecordPart::Value, error))
        })
    };
    value.map(decode).transpose()
}

impl<T: TableTopic> AnyTable for Filling<T> {
    fn take(&mut self, record: &RawRecord, stage: &'static str) -> Option<Settled> {
        let key = decode_key::<T>(record);
        let written = Written::of(record).behind(self.written(record, key.as_ref().ok()))?;
        let taken = self.try_take(record, written, key, stage);
        self.broken.note(record.key.clone(), record, written, taken)
    }

    fn publish(&mut self) -> Result<(), Refused> {
        self.broken.first()?;
        self.deleted.settle();
        for (key, Pending { value, bytes, at, written }) in self.pending.drain() {
            self.rows.put(key, value, bytes, written).map_err(|trouble| Refused { at, trouble })?;
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
    fn put(
        &mut self,
        key: Key<T>,
        value: Option<Value<T>>,
        bytes: usize,
        written: Written,
    ) -> Result<(), Trouble> {
        match value {
            None => self.remove(&key),
            Some(value) => {
                let row = caught(|| T::row(&key, value).map_err(|error| (FailureKind::User, error)))?;
                self.insert(key, row, bytes, written);
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
