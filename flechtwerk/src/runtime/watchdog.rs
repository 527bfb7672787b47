//! The stall limit (S2.8): a hung function must not keep a partition for ever. Looking at it needs no async
//! runtime, so that code which blocks every worker thread is caught too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::host;

/// What a task's user code is busy with.
#[derive(Clone, Debug)]
struct Busy {
    since: Instant,
    /// Names the offsets: "words/3 offsets 17 to 20".
    place: String,
}

/// The rounds of a stage that are being computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchdog {
    /// By partition and number of the call; a task has one round at a time, a token many calls.
    busy: Arc<Mutex<BTreeMap<(i32, u64), Busy>>>,
}

/// One call of an extractor's function. Dropping it says that it has ended, in whichever way.
pub(crate) struct Watched {
    watchdog: Watchdog,
    call: (i32, u64),
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watchdog.lock().remove(&self.call);
    }
}

impl Watchdog {
    /// The task starts to run user code, in a batch for which some has run that long already. Time between rounds, in which a
    /// batch waits for the cluster, is not user code's.
    pub(crate) fn start(&self, partition: i32, place: String, spent: Duration) {
        let now = host::now();
        self.lock().insert((partition, 0), Busy { since: now.checked_sub(spent).unwrap_or(now), place });
    }

    /// A token calls the extractor's function; `number` tells the calls of one token apart.
    pub(crate) fn call(&self, token: i32, number: u64, place: String) -> Watched {
        let call = (token, number);
        self.lock().insert(call, Busy { since: host::now(), place });
        Watched { watchdog: self.clone(), call }
    }

    /// The task's user code has finished, or was dropped. How long it has run for its batch.
    pub(crate) fn stop(&self, partition: i32) -> Duration {
        let busy = self.lock().remove(&(partition, 0));
        busy.map_or(Duration::ZERO, |busy| host::since(busy.since))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(i32, u64), Busy>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition and place of a round that runs when its batch, or of a call that, has taken longer than `limit`.
    pub(crate) fn overdue(&self, limit: Duration) -> Option<(i32, String)> {
        let busy = self.lock();
        busy.iter()
            .find(|(_, busy)| host::since(busy.since) > limit)
            .map(|((partition, _), busy)| (*partition, busy.place.clone()))
    }
}
