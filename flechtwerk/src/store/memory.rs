//! State in memory: as fast as a map, gone with the process.

use std::collections::HashMap as StdHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use self::entries::Entries;
use crate::compact::CompactBytes;
use crate::format::{ChangelogRecord, Kind};
use crate::port::{Store, StoreError, StoreFactory, StoreId, StoreSize};
use crate::timers::{Clock, DueIndex, Summary};

mod entries;

/// The memory stores of this process. They stay while the tasks come and go, so that a task that comes back
/// with nothing committed by others in between finds its state (S4.8).
#[derive(Default)]
pub(crate) struct MemoryStores {
    stores: Mutex<StdHashMap<StoreId, Arc<MemoryStore>>>,
}

impl MemoryStores {
    fn stores(&self) -> MutexGuard<'_, StdHashMap<StoreId, Arc<MemoryStore>>> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreFactory for MemoryStores {
    fn hold(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn open(&self, id: &StoreId, wiped: bool) -> Result<Arc<dyn Store>, StoreError> {
        let mut stores = self.stores();
        if wiped {
            // A new one, so that a task which still holds the old one can't write into it.
            stores.remove(id);
        }
        Ok(Arc::clone(stores.entry(id.clone()).or_default()) as Arc<dyn Store>)
    }
}

/// One task's state.
#[derive(Default)]
struct MemoryStore {
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: Entries,
    stamp: Option<String>,
    /// By state key.
    due: DueIndex<Box<[u8]>>,
    timers: u64,
    /// Bytes of all keys and values.
    bytes: u64,
}

impl Inner {
    /// The timers of a key are about to change.
    fn index(&mut self, key: &[u8], now: Option<&[u8]>) {
        let (before, now) = (Summary::of(self.entries.get(key)), Summary::of(now));
        self.due.change(before, now, || key[1..].into());
        self.timers = self.timers + now.count - before.count;
    }

    fn change(&mut self, changes: &[ChangelogRecord]) {
        for change in changes {
            let ChangelogRecord { key, value } = change;
            if change.is_of(Kind::Timer) {
                self.index(key, value.as_deref());
            }
            let (added, removed) = match value {
                Some(value) => match self.entries.put(key, value) {
                    Some(before) => (value.len(), before),
                    None => (key.len() + value.len(), 0),
                },
                None => (0, self.entries.remove(key).map_or(0, |before| key.len() + before)),
            };
            self.bytes = self.bytes + added as u64 - removed as u64;
        }
    }
}

impl MemoryStore {
    // A panic while the lock was held would have left a half applied batch, but nothing in there panics save
    // for want of memory, which ends the process.
    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn stamp(&self) -> Result<Option<String>, StoreError> {
        Ok(self.read().stamp.clone())
    }

    fn get_many(&self, keys: &[&[u8]], found: &mut Vec<Option<CompactBytes>>) -> Result<(), StoreError> {
        let inner = self.read();
        found.extend(keys.iter().map(|key| inner.entries.get(key).map(CompactBytes::from)));
        Ok(())
    }

    fn apply(&self, changes: &[ChangelogRecord], stamp: &str) -> Result<(), StoreError> {
        let mut inner = self.write();
        inner.change(changes);
        inner.stamp = Some(stamp.to_owned());
        Ok(())
    }

    fn restore(&self, changes: &[ChangelogRecord]) -> Result<(), StoreError> {
        let mut inner = self.write();
        inner.stamp = None;
        inner.change(changes);
        Ok(())
    }

    fn restored(&self, stamp: Option<&str>) -> Result<(), StoreError> {
        self.write().stamp = stamp.map(str::to_owned);
        Ok(())
    }

    fn due(
        &self,
        clock: Clock,
        from: i64,
        visit: &mut dyn FnMut(i64, &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let inner = self.read();
        for (due, key) in inner.due.of(clock, from) {
            if !visit(due, key) {
                break;
            }
        }
        Ok(())
    }

    fn wipe(&self) -> Result<(), StoreError> {
        let entries = {
            let mut inner = self.write();
            std::mem::take(&mut *inner)
        };
        // Freeing a million entries takes a while; readers need not wait for it.
        drop(entries);
        Ok(())
    }

    fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.read().entries.len() == 0)
    }

    fn size(&self) -> StoreSize {
        let inner = self.read();
        StoreSize { bytes: inner.bytes, entries: inner.entries.len() as u64, timers: inner.timers }
    }

    #[cfg(test)]
    fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let inner = self.read();
        let mut entries: Vec<_> = inner.entries.iter().collect();
        entries.sort_unstable();
        for (key, value) in entries {
            visit(key, value);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::suite;

    #[test]
    fn keeps_the_contract_of_stores() {
        let stores = MemoryStores::default();
        suite::contract(&mut |id, wiped| stores.open(id, wiped));
    }

    #[test]
    fn a_wiped_open_leaves_the_old_holder_alone() {
        let stores = MemoryStores::default();
        let id = suite::id("app", 0);
        let old = stores.open(&id, false).unwrap();
        let new = stores.open(&id, true).unwrap();
        old.apply(&[suite::put("a", "1")], "late").unwrap();
        assert!(new.is_empty().unwrap());
        assert_eq!(new.stamp().unwrap(), None);
    }
}
