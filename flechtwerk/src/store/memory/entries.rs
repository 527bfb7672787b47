//! The map of a store in memory. A look-up costs what the memory it touches costs: small entries lie in the table
//! itself, key and value beside each other, and larger ones in one allocation.

use std::hash::BuildHasher;

use hashbrown::hash_table::Entry as Place;
use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::SmallVec;

/// Bytes of key and value that lie in the table.
const INLINE: usize = 44;

/// A key and, behind it, its value. They are copies: what comes in are slices of large buffers, which one small entry
/// would keep alive.
struct Entry {
    bytes: SmallVec<[u8; INLINE]>,
    key_len: u32,
}

impl Entry {
    fn new(key: &[u8], value: &[u8]) -> Self {
        let mut bytes = SmallVec::with_capacity(key.len() + value.len());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        // The format of Kafka's records has no room for a longer key.
        Self { bytes, key_len: key.len() as u32 }
    }

    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_len as usize]
    }

    fn value(&self) -> &[u8] {
        &self.bytes[self.key_len as usize..]
    }

    fn set(&mut self, value: &[u8]) {
        let start = self.key_len as usize;
        if self.bytes.len() == start + value.len() {
            self.bytes[start..].copy_from_slice(value);
        } else if self.bytes.spilled() {
            // No more room than it needs: a value that was large once may stay small.
            *self = Self::new(self.key(), value);
        } else {
            self.bytes.truncate(start);
            self.bytes.reserve_exact(value.len());
            self.bytes.extend_from_slice(value);
        }
    }
}

/// Keys with their values.
#[derive(Default)]
pub(super) struct Entries {
    table: HashTable<Entry>,
    hasher: DefaultHashBuilder,
}

impl Entries {
    pub(super) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.table.find(self.hasher.hash_one(key), |entry| entry.key() == key).map(Entry::value)
    }

    /// Sets a value, and gives the length of the one before.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Option<usize> {
        let Self { table, hasher } = self;
        let place = table.entry(
            hasher.hash_one(key),
            |entry| entry.key() == key,
            |entry| hasher.hash_one(entry.key()),
        );
        match place {
            Place::Occupied(mut place) => {
                let entry = place.get_mut();
                let before = entry.value().len();
                entry.set(value);
                Some(before)
            }
            Place::Vacant(place) => {
                place.insert(Entry::new(key, value));
                None
            }
        }
    }

    /// Removes a key, and gives the length of its value.
    pub(super) fn remove(&mut self, key: &[u8]) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        let (entry, _) = self.table.find_entry(hash, |entry| entry.key() == key).ok()?.remove();
        Some(entry.value().len())
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.table.iter().map(|entry| (entry.key(), entry.value()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Keys and values on both sides of what lies in the table, against a map of the standard library.
        #[test]
        fn is_a_map(
            steps in proptest::collection::vec((0usize..12, 0usize..90, any::<u8>(), any::<bool>()), 0..200),
        ) {
            let (mut entries, mut model) = (Entries::default(), HashMap::new());
            for (key, value, byte, remove) in steps {
                let (key, value) = (vec![key as u8; key * 7], vec![byte; value]);
                if remove {
                    prop_assert_eq!(entries.remove(&key), model.remove(&key).map(|before: Vec<u8>| before.len()));
                } else {
                    let before = entries.put(&key, &value);
                    prop_assert_eq!(before, model.insert(key, value).map(|before| before.len()));
                }
                prop_assert_eq!(entries.len(), model.len());
            }
            for key in 0..12 {
                let key = vec![key as u8; key * 7];
                prop_assert_eq!(entries.get(&key), model.get(&key).map(Vec::as_slice));
            }
            let all: HashMap<_, _> =
                entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            prop_assert_eq!(all, model);
        }
    }
}
