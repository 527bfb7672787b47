//! Topics that are read whole, tables and configs: of each key the last record counts, and only that one has to decode. A wrong one
//! is mended by a right one under the same key, whether or not it has been compacted away (S9.2, S10.5).

use std::hash::Hash;

use hashbrown::HashMap;

use super::{Cause, RawRecord, Trouble};

/// A record that can't be taken, and is the last one of its key.
#[derive(Debug)]
pub struct Refused {
    /// Where it lies.
    pub at: Cause,
    /// What is wrong with it.
    pub trouble: Trouble,
}

/// The keys whose last record can't be taken.
pub struct Broken<K>(HashMap<K, Refused>);

impl<K> Default for Broken<K> {
    fn default() -> Self {
        Broken(HashMap::default())
    }
}

impl<K: Eq + Hash> Broken<K> {
    /// Takes note of what came of a key's next record.
    pub fn note<R: Default>(&mut self, key: K, record: &RawRecord, taken: Result<R, Trouble>) -> R {
        match taken {
            Ok(result) => {
                if !self.0.is_empty() {
                    self.0.remove(&key);
                }
                result
            }
            Err(trouble) => {
                self.0.insert(key, Refused { at: record.at(), trouble });
                R::default()
            }
        }
    }

    /// Refuses the first of them, by their places; to be asked when all there is has been taken.
    pub fn first(&mut self) -> Result<(), Refused> {
        let all = self.0.drain().map(|(_, refused)| refused);
        all.min_by_key(|refused| refused.at).map_or(Ok(()), Err)
    }
}
