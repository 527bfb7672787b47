//! Stores in memory that fail when a test says so.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::compact::CompactBytes;
use crate::format::ChangelogRecord;
use crate::port::{Store, StoreError, StoreFactory, StoreId, StoreSize};
use crate::store::MemoryStores;
use crate::timers::Clock;

fn broken(in_use: bool) -> StoreError {
    StoreError { what: "can't use the store".into(), in_use, source: "as the test says".into() }
}

/// Stores in memory, until one of them is to fail.
#[derive(Clone, Default)]
pub(crate) struct Shelf {
    stores: Arc<MemoryStores>,
    /// What the next call fails with: another process holds the store, or it is broken.
    failing: Arc<Mutex<Option<StoreError>>>,
    /// The same for the next looking up.
    unreadable: Arc<Mutex<Option<StoreError>>>,
    pub(crate) flushes: Arc<AtomicUsize>,
}

impl Shelf {
    pub(crate) fn fail(&self, in_use: bool) {
        *self.failing.lock().unwrap() = Some(broken(in_use));
    }

    pub(crate) fn fail_reading(&self) {
        *self.unreadable.lock().unwrap() = Some(broken(false));
    }

    fn check(&self) -> Result<(), StoreError> {
        self.failing.lock().unwrap().take().map_or(Ok(()), Err)
    }
}

impl StoreFactory for Shelf {
    fn hold(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn open(&self, id: &StoreId, wiped: bool) -> Result<Arc<dyn Store>, StoreError> {
        self.check()?;
        Ok(Arc::new(OnShelf { shelf: self.clone(), store: self.stores.open(id, wiped)? }))
    }
}

struct OnShelf {
    shelf: Shelf,
    store: Arc<dyn Store>,
}

impl Store for OnShelf {
    fn stamp(&self) -> Result<Option<String>, StoreError> {
        self.shelf.check()?;
        self.store.stamp()
    }

    fn get_many(&self, keys: &[&[u8]], found: &mut Vec<Option<CompactBytes>>) -> Result<(), StoreError> {
        self.shelf.unreadable.lock().unwrap().take().map_or(Ok(()), Err)?;
        self.store.get_many(keys, found)
    }

    fn apply(&self, changes: &[ChangelogRecord], stamp: &str) -> Result<(), StoreError> {
        self.shelf.check()?;
        self.store.apply(changes, stamp)
    }

    fn restore(&self, changes: &[ChangelogRecord]) -> Result<(), StoreError> {
        self.store.restore(changes)
    }

    fn restored(&self, stamp: Option<&str>) -> Result<(), StoreError> {
        self.store.restored(stamp)
    }

    fn due(
        &self,
        clock: Clock,
        from: i64,
        visit: &mut dyn FnMut(i64, &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.store.due(clock, from, visit)
    }

    fn wipe(&self) -> Result<(), StoreError> {
        self.shelf.check()?;
        self.store.wipe()
    }

    fn is_empty(&self) -> Result<bool, StoreError> {
        self.store.is_empty()
    }

    fn size(&self) -> StoreSize {
        StoreSize { timers: 5, ..self.store.size() }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        self.store.for_each(visit)
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.shelf.flushes.fetch_add(1, Ordering::SeqCst);
        self.shelf.check()
    }
}
