//! Tables: topics that every instance holds whole.

use std::any::Any;
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use rpds::HashTrieMapSync;

use crate::codec::Codec;
use crate::glue::{self, Env, Share, TableInfo, Written};
use crate::shared::SharedPart;
use crate::topic::{Key, Topic};

/// A topic that can be a table: its keys can be looked up, and its rows looked at from several threads. Every topic is one
/// whose key is `Eq + Hash + Sync` and whose value is `Sync`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the topic of a table",
    label = "not the topic of a table",
    note = "a table is a topic whose keys are `Eq + Hash`, since they are looked up, and whose keys and rows are `Sync`, since \
            all tasks look at them at once"
)]
pub trait TableTopic: Topic<KeyCodec: Codec<Item = Self::TableKey>, Row = Self::TableRow> {
    #[doc(hidden)]
    type TableKey: Eq + Hash + Send + Sync + 'static;
    #[doc(hidden)]
    type TableRow: Send + Sync + 'static;
}

#[diagnostic::do_not_recommend]
impl<T: Topic> TableTopic for T
where
    Key<T>: Eq + Hash + Send + Sync,
    T::Row: Send + Sync,
{
    type TableKey = Key<T>;
    type TableRow = T::Row;
}

/// What a table holds for a key: the value of its topic's last record, or what the topic's `enrich` function made of it.
pub type Row<T> = <T as Topic>::Row;

/// A parameter of a stage: a topic as a map, whole, as of one moment.
///
/// Every instance reads the topic's every partition before its stages join their groups, and goes on reading it. All
/// records of one batch see one version. Lookups are eventually consistent: nothing ties a record of the stage's input to what
/// was written to the table's topic at the same time.
///
/// ```
/// use flechtwerk::prelude::*;
///
/// #[topic("articles", key = Utf8, value = Json<f64>)]
/// pub struct Articles;
/// #[topic("orders", key = Utf8, value = Utf8)]
/// pub struct Orders;
/// #[topic("invoices", key = Utf8, value = Json<f64>)]
/// pub struct Invoices;
///
/// #[transformer(inputs = [Orders])]
/// pub async fn invoice(order: Record<Orders>, prices: &Table<Articles>, out: &mut Out<Invoices>) -> flechtwerk::Result {
///     let price = prices.get(&order.value).ok_or("no such article")?;
///     out.send(order.key, *price);
///     Ok(())
/// }
///
/// // In a test of the function:
/// let prices: Table<Articles> = [("tea".to_owned(), 2.5)].into_iter().collect();
/// assert_eq!(prices.get("tea"), Some(&2.5));
/// ```
pub struct Table<T> {
    /// The [`Rows`] of `T`. What they are is known where `T` is a [`TableTopic`]; whether it is one is not demanded of the
    /// mere name of the type, so that a mistake is told where a stage takes the table, and once.
    rows: Arc<dyn Any + Send + Sync>,
    topic: PhantomData<fn() -> T>,
}

/// One version of a table's rows.
pub(crate) struct Rows<T: TableTopic> {
    map: HashTrieMapSync<T::TableKey, Held<T::TableRow>, DefaultHashBuilder>,
    bytes: usize,
}

/// A row and the size of the record that it comes from.
struct Held<R> {
    row: R,
    bytes: u32,
    /// The two parts of a [`Written`], which take less room so.
    partition: i32,
    timestamp: i64,
}

impl<T: TableTopic> Table<T> {
    /// An empty table, for tests.
    pub fn new() -> Self {
        Rows::new().into()
    }

    /// The row of a key. A key that is a `String` is found by a `&str` as well.
    pub fn get<Q>(&self, key: &Q) -> Option<&Row<T>>
    where
        Q: Eq + Hash + ?Sized,
        Key<T>: Borrow<Q>,
    {
        self.held().map.get(key).map(|held| &held.row)
    }

    /// Whether the table has a row for a key.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Eq + Hash + ?Sized,
        Key<T>: Borrow<Q>,
    {
        self.held().map.contains_key(key)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.held().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held().map.is_empty()
    }

    /// All keys and rows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key<T>, &Row<T>)> {
        self.held().map.iter().map(|(key, held)| (key, &held.row))
    }

    /// All keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &Key<T>> {
        self.held().map.keys()
    }

    /// All rows, in no order.
    pub fn rows(&self) -> impl Iterator<Item = &Row<T>> {
        self.held().map.values().map(|held| &held.row)
    }

    fn held(&self) -> &Rows<T> {
        match self.rows.downcast_ref() {
            Some(rows) => rows,
            None => unreachable!("a table is made of the rows of its topic"),
        }
    }
}

impl<T: TableTopic> Rows<T> {
    pub(crate) fn new() -> Self {
        Rows { map: HashTrieMapSync::new_with_hasher_and_ptr_kind(DefaultHashBuilder::default()), bytes: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.map.size()
    }

    /// Bytes of the keys and values, as they were in their records.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn insert(&mut self, key: Key<T>, row: Row<T>, bytes: usize, written: Written) {
        self.forget(&key);
        self.bytes += bytes;
        let Written { timestamp, partition } = written;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.map.insert_mut(key, Held { row, bytes, partition, timestamp });
    }

    /// When and where the row of a key was written.
    pub(crate) fn written(&self, key: &Key<T>) -> Option<Written> {
        let held = self.map.get(key)?;
        Some(Written { timestamp: held.timestamp, partition: held.partition })
    }

    pub(crate) fn remove(&mut self, key: &Key<T>) {
        self.forget(key);
        self.map.remove_mut(key);
    }

    fn forget(&mut self, key: &Key<T>) {
        let before = self.map.get(key).map_or(0, |held| held.bytes as usize);
        self.bytes = self.bytes.saturating_sub(before);
    }
}

/// Cheap: the rows are shared.
impl<T: TableTopic> Clone for Rows<T> {
    fn clone(&self) -> Self {
        Rows { map: self.map.clone(), bytes: self.bytes }
    }
}

impl<T: TableTopic> From<Rows<T>> for Table<T> {
    fn from(rows: Rows<T>) -> Self {
        Table { rows: Arc::new(rows), topic: PhantomData }
    }
}

impl<T: TableTopic> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Cheap: the rows are shared.
impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Table { rows: self.rows.clone(), topic: PhantomData }
    }
}

/// For tests: the rows as a stage is to see them. Of equal keys the last one counts.
impl<T: TableTopic> FromIterator<(Key<T>, Row<T>)> for Table<T> {
    fn from_iter<I: IntoIterator<Item = (Key<T>, Row<T>)>>(rows: I) -> Self {
        let mut table = Rows::new();
        rows.into_iter().for_each(|(key, row)| table.insert(key, row, 0, Written::default()));
        table.into()
    }
}

/// Shows topic and size, not what it holds: payloads don't belong in logs.
impl<T: TableTopic> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}, {} keys)", T::NAME, self.len())
    }
}

impl<T: TableTopic> SharedPart for Table<T> {
    const SHARE: Share = Share::Table(const { &TableInfo { topic: T::INFO, make: glue::table::<T> } });

    fn open(env: &Env) -> Option<Self> {
        env.find::<Rows<T>>().map(|rows| Table { rows, topic: PhantomData })
    }
}
