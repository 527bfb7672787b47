//! Topics that are read whole, tables and configs: of each key the last record counts, and only that one has to decode. A wrong one
//! is mended by a right one under the same key, whether or not it has been compacted away (S9.2, S10.5).
//!
//! A key may lie in several partitions, since partitions were added or writers disagree. They are read in no order, so which record is
//! the last one is told by what the records say, and not by when they are read (S9.2f).

use std::borrow::Borrow;
use std::hash::Hash;

use hashbrown::HashMap;

use super::{Cause, RawRecord, Trouble};

/// How many deletions are remembered at the least, once the topic is whole.
const REMEMBERED: usize = 10_000;

/// When and where a key was written last: what is later stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// Among equal times that of the highest number is the last one.
    pub partition: i32,
}

impl Written {
    /// When and where this record was written.
    pub fn of(record: &RawRecord) -> Self {
        Written { timestamp: record.timestamp, partition: record.partition }
    }

    /// What stands of the key when this comes behind what there is. `None`: another partition has what was written later.
    ///
    /// Within a partition the order is that of the offsets, whatever the times say. The largest of them is kept, so that the outcome
    /// is the same whichever partition is read first.
    pub fn behind(self, before: Option<Written>) -> Option<Written> {
        match before {
            Some(before) if before.partition == self.partition => Some(self.max(before)),
            Some(before) if before > self => None,
            _ => Some(self),
        }
    }
}

/// Keys that were deleted, so that an older record of another partition does not bring them back. Once the topic is whole, the last
/// ones only: what comes then is seldom older than what was there.
pub struct Deleted<K> {
    recent: HashMap<K, Written>,
    older: HashMap<K, Written>,
    /// There are several partitions.
    several: bool,
}

impl<K: Eq + Hash> Deleted<K> {
    /// Of a topic with so many partitions.
    pub fn new(partitions: i32) -> Self {
        Deleted { recent: HashMap::default(), older: HashMap::default(), several: partitions > 1 }
    }

    /// When it was.
    pub fn written<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Written>
    where
        K: Borrow<Q>,
    {
        self.recent.get(key).or_else(|| self.older.get(key)).copied()
    }

    /// This key is deleted.
    pub fn insert(&mut self, key: impl FnOnce() -> K, written: Written) {
        if self.several {
            self.recent.insert(key(), written);
        }
    }

    /// This key is there.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if !self.recent.is_empty() || !self.older.is_empty() {
            self.recent.remove(key);
            self.older.remove(key);
        }
    }

    /// All that there is has been taken: forgets the oldest ones.
    pub fn settle(&mut self) {
        if self.recent.len() >= REMEMBERED {
            self.older = std::mem::take(&mut self.recent);
        }
    }
}

/// A record that can't be taken, and is the last one of its key.
#[derive(Debug)]
pub struct Refused {
    /// Where it lies.
    pub at: Cause,
    /// What is wrong with it.
    pub trouble: Trouble,
}

/// The keys whose last record can't be taken.
pub struct Broken<K>(HashMap<K, (Refused, Written)>);

impl<K> Default for Broken<K> {
    fn default() -> Self {
        Broken(HashMap::default())
    }
}

impl<K: Eq + Hash> Broken<K> {
    /// Takes note of what came of a key's next record.
    pub fn note<R: Default>(
        &mut self,
        key: K,
        record: &RawRecord,
        written: Written,
        taken: Result<R, Trouble>,
    ) -> R {
        match taken {
            Ok(result) => {
                if !self.0.is_empty() {
                    self.0.remove(&key);
                }
                result
            }
            Err(trouble) => {
                self.0.insert(key, (Refused { at: record.at(), trouble }, written));
                R::default()
            }
        }
    }

    /// When a key was written last, if it is one of them.
    pub fn written(&self, key: &K) -> Option<Written> {
        self.0.get(key).map(|(_, written)| *written)
    }

    /// Refuses the first of them, by their places; to be asked when all there is has been taken.
    pub fn first(&mut self) -> Result<(), Refused> {
        let all = self.0.drain().map(|(_, (refused, _))| refused);
        all.min_by_key(|refused| refused.at).map_or(Ok(()), Err)
    }
}
