//! When which config of a token is polled. Keeps no clock: the time is handed in, and so is chance.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::configs::{Config, ConfigId};
use crate::next::Next;

/// After so many pages of `Next::Again` in a row, none of which brought anything new, the source is broken.
pub(super) const AGAIN_LIMIT: u32 = 100;
/// A call that took as long has waited for something new, as a long poll does, and is no question without end.
const WAITED: Duration = Duration::from_secs(1);
/// The first polls of a token's configs are spread out: so much for each config.
const SPREAD: Duration = Duration::from_millis(10);
/// And not over more than this.
const LONGEST_SPREAD: Duration = Duration::from_secs(10);
/// What lies further away never comes.
const FAR: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// A config and where it is in its cycle.
struct Entry {
    config: Arc<Config>,
    /// When it is due, while it waits.
    due: Option<Place>,
    under_way: bool,
    /// When its last call began.
    began: Instant,
    /// Pages of `Next::Again` in a row that brought nothing new.
    fruitless: u32,
    /// The messages of the last page, as a hash.
    last: u64,
}

/// A place in the queue: first come, first served among those that are due at one time.
type Place = (Instant, u64);

/// See the module.
pub(super) struct Schedule {
    interval: Duration,
    configs: HashMap<ConfigId, Entry>,
    queue: BTreeMap<Place, ConfigId>,
    next_number: u64,
    /// State keys that are being polled, or whose page is being committed.
    busy: HashSet<Bytes>,
    /// Due configs whose state key is busy with another config.
    held: HashMap<Bytes, Vec<ConfigId>>,
}

impl Schedule {
    pub(super) fn new(interval: Duration) -> Schedule {
        Schedule {
            interval,
            configs: HashMap::new(),
            queue: BTreeMap::new(),
            next_number: 0,
            busy: HashSet::new(),
            held: HashMap::new(),
        }
    }

    /// The time over which the first polls of so many configs are spread.
    pub(super) fn spread(configs: usize, interval: Duration) -> Duration {
        let count = u32::try_from(configs).unwrap_or(u32::MAX);
        SPREAD.saturating_mul(count).min(LONGEST_SPREAD).min(interval)
    }

    /// The configs that a token begins with. `chance` gives numbers from 0 to 1.
    pub(super) fn begin(&mut self, configs: Vec<Arc<Config>>, now: Instant, mut chance: impl FnMut() -> f64) {
        let spread = Schedule::spread(configs.len(), self.interval);
        for config in configs {
            self.set(config, now + spread.mul_f64(chance().clamp(0.0, 1.0)));
        }
    }

    /// A new config, or a new version of one that is known. `first` is when a config is polled that was not before.
    pub(super) fn set(&mut self, config: Arc<Config>, first: Instant) {
        let id = config.id.clone();
        match self.configs.get_mut(&id) {
            None => {
                let suspended = config.suspended;
                let entry =
                    Entry { config, due: None, under_way: false, began: first, fruitless: 0, last: 0 };
                self.configs.insert(id.clone(), entry);
                if !suspended {
                    self.enqueue(&id, first);
                }
            }
            Some(entry) => {
                let resumed = entry.config.suspended && !config.suspended;
                let suspended = config.suspended;
                entry.config = config;
                if suspended {
                    self.dequeue(&id);
                } else if resumed && !entry.under_way {
                    self.enqueue(&id, first);
                }
            }
        }
    }

    /// A config is no longer polled here.
    pub(super) fn gone(&mut self, id: &ConfigId) {
        self.dequeue(id);
        self.configs.remove(id);
    }

    /// How many configs are polled.
    pub(super) fn len(&self) -> usize {
        self.configs.values().filter(|entry| !entry.config.suspended).count()
    }

    /// When the next one is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next config that is due, which is under way from now on, until [`done`](Self::done).
    pub(super) fn next(&mut self, now: Instant) -> Option<Arc<Config>> {
        loop {
            let entry = self.queue.first_entry()?;
            if entry.key().0 > now {
                return None;
            }
            let id = entry.remove();
            let Some(entry) = self.configs.get_mut(&id) else { continue };
            entry.due = None;
            if !self.busy.insert(entry.config.key.clone()) {
                self.held.entry(entry.config.key.clone()).or_default().push(id);
                continue;
            }
            (entry.under_way, entry.began) = (true, now);
            return Some(entry.config.clone());
        }
    }

    /// A page is complete, of a call that has just ended; its messages come as a hash. Says how many in a row were fruitless,
    /// where that is too many.
    pub(super) fn page(
        &mut self,
        id: &ConfigId,
        next: Next,
        cursor_moved: bool,
        messages: u64,
        now: Instant,
    ) -> Result<(), u32> {
        let Some(entry) = self.configs.get_mut(id) else { return Ok(()) };
        let new = cursor_moved || messages != entry.last;
        entry.last = messages;
        // No time to wait is the same question.
        let at_once = matches!(next, Next::Again | Next::After(Duration::ZERO));
        let waited = now.saturating_duration_since(entry.began) >= WAITED;
        entry.fruitless = if new || waited || !at_once { 0 } else { entry.fruitless + 1 };
        if entry.fruitless >= AGAIN_LIMIT { Err(entry.fruitless) } else { Ok(()) }
    }

    /// A config's page is committed, or it had nothing to commit. `ended` is when its call ended; what is overdue since
    /// is polled once, not once for each tick that was missed.
    pub(super) fn done(&mut self, config: &Config, next: Next, ended: Instant, now: Instant) {
        let wait = match next {
            Next::Again => Duration::ZERO,
            Next::Idle => self.interval,
            Next::After(wait) => wait.min(FAR),
        };
        self.released(config, ended.checked_add(wait).unwrap_or(ended).max(now), now);
    }

    /// A call was cancelled because its config is gone or suspended.
    pub(super) fn cancelled(&mut self, config: &Config, now: Instant) {
        self.released(config, now, now);
    }

    fn released(&mut self, config: &Config, at: Instant, now: Instant) {
        self.busy.remove(&config.key);
        // Those that waited for it come first.
        for id in self.held.remove(&config.key).unwrap_or_default() {
            let waits = |entry: &Entry| entry.due.is_none() && !entry.under_way && !entry.config.suspended;
            if self.configs.get(&id).is_some_and(waits) {
                self.enqueue(&id, now);
            }
        }
        if let Some(entry) = self.configs.get_mut(&config.id) {
            entry.under_way = false;
            if !entry.config.suspended {
                self.enqueue(&config.id, at);
            }
        }
    }

    fn enqueue(&mut self, id: &ConfigId, at: Instant) {
        self.dequeue(id);
        let Some(entry) = self.configs.get_mut(id) else { return };
        let place = (at, self.next_number);
        self.next_number += 1;
        entry.due = Some(place);
        self.queue.insert(place, id.clone());
    }

    fn dequeue(&mut self, id: &ConfigId) {
        if let Some(place) = self.configs.get_mut(id).and_then(|entry| entry.due.take()) {
            self.queue.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests;
