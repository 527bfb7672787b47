//! State folders: what a process finds again after it was killed, and what a loss of power leaves of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flechtwerk::Clock;
use flechtwerk::simulation::{
    ChangelogRecord, CompactBytes, Store, StoreError, StoreFactory, StoreId, StoreSize,
};

use crate::chance::Chance;

/// A state folder of a process.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<Folders>>);

/// By application id and partition.
type Folders = BTreeMap<(String, i32), Arc<SimStore>>;

#[derive(Clone, Debug)]
enum Write {
    /// Changes, and the stamp behind them.
    Batch(Vec<ChangelogRecord>, Option<String>),
    Wipe,
}

#[derive(Clone, Default)]
pub(crate) struct Content {
    pub(crate) entries: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) stamp: Option<String>,
}

impl Content {
    fn write(&mut self, write: &Write) {
        match write {
            Write::Wipe => *self = Content::default(),
            Write::Batch(changes, stamp) => {
                for ChangelogRecord { key, value } in changes {
                    match value {
                        Some(value) => self.entries.insert(key.to_vec(), value.to_vec()),
                        None => self.entries.remove(&key[..]),
                    };
                }
                self.stamp.clone_from(stamp);
            }
        }
    }
}

#[derive(Default)]
struct Inside {
    now: Content,
    flushed: Content,
    /// Since then.
    writes: Vec<Write>,
}

/// One task's folder.
#[derive(Default)]
pub(crate) struct SimStore(Mutex<Inside>);

impl SimStore {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, write: Write) {
        let mut inside = self.lock();
        inside.now.write(&write);
        inside.writes.push(write);
    }
}

impl Disk {
    fn stores(&self) -> MutexGuard<'_, Folders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Power is lost: of what was written since the last flush a part is there, from the beginning.
    pub(crate) fn lose_power(&self, chance: &mut Chance) {
        for store in self.stores().values() {
            let mut inside = store.lock();
            let mut content = inside.flushed.clone();
            let kept = chance.below(inside.writes.len() as u64 + 1) as usize;
            inside.writes[..kept].iter().for_each(|write| content.write(write));
            *inside = Inside { now: content.clone(), flushed: content, writes: Vec::new() };
        }
    }

    /// What is in it, by partition.
    pub(crate) fn contents(&self) -> Vec<(i32, Content)> {
        self.stores().iter().map(|((_, partition), store)| (*partition, store.lock().now.clone())).collect()
    }
}

impl StoreFactory for Disk {
    fn hold(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn open(&self, id: &StoreId, wiped: bool) -> Result<Arc<dyn Store>, StoreError> {
        let mut stores = self.stores();
        let store = stores.entry((id.application_id.clone(), id.partition)).or_default();
        if Arc::strong_count(store) > 1 {
            return Err(StoreError {
                what: "the folder is held by another task of this process".into(),
                in_use: true,
                source: "simulated".into(),
            });
        }
        if wiped {
            store.write(Write::Wipe);
        }
        Ok(store.clone())
    }
}

impl Store for SimStore {
    fn stamp(&self) -> Result<Option<String>, StoreError> {
        Ok(self.lock().now.stamp.clone())
    }

    fn get_many(&self, keys: &[&[u8]], found: &mut Vec<Option<CompactBytes>>) -> Result<(), StoreError> {
        let inside = self.lock();
        found.extend(keys.iter().map(|key| inside.now.entries.get(*key).map(|value| value[..].into())));
        Ok(())
    }

    fn apply(&self, changes: &[ChangelogRecord], stamp: &str) -> Result<(), StoreError> {
        self.write(Write::Batch(changes.to_vec(), Some(stamp.to_owned())));
        Ok(())
    }

    fn restore(&self, changes: &[ChangelogRecord]) -> Result<(), StoreError> {
        self.write(Write::Batch(changes.to_vec(), None));
        Ok(())
    }

    fn restored(&self, stamp: Option<&str>) -> Result<(), StoreError> {
        if let Some(stamp) = stamp {
            self.write(Write::Batch(Vec::new(), Some(stamp.to_owned())));
        }
        Ok(())
    }

    /// The stages that are simulated take no timers.
    fn due(&self, _: Clock, _: i64, _: &mut dyn FnMut(i64, &[u8]) -> bool) -> Result<(), StoreError> {
        Ok(())
    }

    fn wipe(&self) -> Result<(), StoreError> {
        // The stamp goes first.
        self.write(Write::Batch(Vec::new(), None));
        self.write(Write::Wipe);
        Ok(())
    }

    fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.lock().now.entries.is_empty())
    }

    fn size(&self) -> StoreSize {
        StoreSize::default()
    }

    fn flush(&self) -> Result<(), StoreError> {
        let mut inside = self.lock();
        inside.flushed = inside.now.clone();
        inside.writes.clear();
        Ok(())
    }
}
