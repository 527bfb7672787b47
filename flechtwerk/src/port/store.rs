//! The port to a task's local state store.

use crate::compact::CompactBytes;
use crate::format::ChangelogRecord;
use crate::timers::{Clock, Summary};

/// A store failed to open, read or write. The runtime wipes and restores once, then gives up.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct StoreError {
    /// What was being done, with the place: "can't open the state folder /x/y".
    pub what: String,
    /// Another process holds the store: waiting or wiping would be wrong.
    pub in_use: bool,
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// The state of one task on this machine. Keys and values are changelog bytes; nothing is decoded here.
/// All methods may block on the disk. A store belongs to one task; reads may run beside one writer.
pub trait Store: Send + Sync {
    /// The stamp of the last transaction that is in the store, or `None` for an empty or half restored one.
    fn stamp(&self) -> Result<Option<String>, StoreError>;
    /// Looks the keys up, in order, appending to `found`.
    fn get_many(&self, keys: &[&[u8]], found: &mut Vec<Option<CompactBytes>>) -> Result<(), StoreError>;
    /// Applies one committed batch and its stamp, atomically.
    fn apply(&self, changes: &[ChangelogRecord], stamp: &str) -> Result<(), StoreError>;
    /// [`apply`](Store::apply) by one who knows what lies there: `timers` are what the entries of timers among `changes`, in
    /// their order, had until now. A store that would have to look it up need not.
    fn apply_over(
        &self,
        changes: &[ChangelogRecord],
        timers: &[Summary],
        stamp: &str,
    ) -> Result<(), StoreError> {
        let _ = timers;
        self.apply(changes, stamp)
    }
    /// Adds restored changelog records, in changelog order. The stamp is gone since the wipe before.
    fn restore(&self, changes: &[ChangelogRecord]) -> Result<(), StoreError>;
    /// Ends a restore: from now on the store holds all up to `stamp`, where that has a name, and finds timers.
    fn restored(&self, stamp: Option<&str>) -> Result<(), StoreError>;
    /// Visits state keys by their earliest timer of this clock, beginning with those due at `from`, in the order of due
    /// times, until `visit` says that it is enough.
    fn due(
        &self,
        clock: Clock,
        from: i64,
        visit: &mut dyn FnMut(i64, &[u8]) -> bool,
    ) -> Result<(), StoreError>;
    /// Removes everything, the stamp first.
    fn wipe(&self) -> Result<(), StoreError>;
    /// True if it holds no entry (a stamp does not count).
    fn is_empty(&self) -> Result<bool, StoreError>;
    /// Bytes it takes, roughly, and number of entries where that is known cheaply.
    fn size(&self) -> StoreSize;
    /// All entries in key order.
    #[cfg(test)]
    fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError>;
    /// Makes what was applied durable; called once, at a clean stop.
    fn flush(&self) -> Result<(), StoreError>;
}

/// A store's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSize {
    pub bytes: u64,
    pub entries: u64,
    /// Pending timers.
    pub timers: u64,
}

/// Identity of a task's store: it may be reused only by the same application id, partition and format.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreId {
    pub application_id: String,
    pub partition: i32,
}

/// Opens stores. Memory stores live as long as the factory (one process), so that a task which comes back may
/// find its own.
pub trait StoreFactory: Send + Sync {
    /// Takes the folder of a stage for this process, as long as the factory lives: two processes in one folder would
    /// go well until a task moves from one to the other, and must be noticed at the start.
    fn hold(&self, application_id: &str) -> Result<(), StoreError>;
    /// Opens or creates the store of a task. With `wiped`, whatever is there is deleted first, also where it
    /// can't be opened any more.
    fn open(&self, id: &StoreId, wiped: bool) -> Result<std::sync::Arc<dyn Store>, StoreError>;
}
