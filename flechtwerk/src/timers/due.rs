//! Which timers are due first, beside the entries that hold them: of each key with timers the earliest of each clock, in the
//! order of their due times.

use std::collections::BTreeSet;

use super::{Clock, Summary};

/// See the module; `K` is how its owner names a key.
#[derive(Debug, Default)]
pub(crate) struct DueIndex<K>(BTreeSet<(Clock, i64, K)>);

impl<K: Ord + Default> DueIndex<K> {
    /// Follows a change of a key's timers.
    pub(crate) fn change(&mut self, before: Summary, now: Summary, key: impl Fn() -> K) {
        for (clock, due) in before.due() {
            self.0.remove(&(clock, due, key()));
        }
        self.0.extend(now.due().map(|(clock, due)| (clock, due, key())));
    }

    /// Due times of one clock from `from` on, each with its key.
    pub(crate) fn of(&self, clock: Clock, from: i64) -> impl Iterator<Item = (i64, &K)> {
        let rest = self.0.range((clock, from, K::default())..);
        rest.take_while(move |(other, ..)| *other == clock).map(|(_, due, key)| (*due, key))
    }
}
