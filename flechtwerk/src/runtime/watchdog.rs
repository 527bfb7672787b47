//! The stall limit (S2.8): a hung function must not keep a partition for ever. Looking at it needs no async
//! runtime, so that code which blocks every worker thread is caught too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
    busy: Arc<Mutex<BTreeMap<i32, Busy>>>,
}

impl Watchdog {
    /// The task starts to run user code.
    pub(crate) fn start(&self, partition: i32, place: String) {
        let busy = Busy { since: Instant::now(), place };
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(partition, busy);
    }

    /// The task's user code has finished, or was dropped.
    pub(crate) fn stop(&self, partition: i32) {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&partition);
    }

    /// The partition and place of a round that takes longer than `limit`.
    pub(crate) fn overdue(&self, limit: Duration) -> Option<(i32, String)> {
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.iter()
            .find(|(_, busy)| busy.since.elapsed() > limit)
            .map(|(partition, busy)| (*partition, busy.place.clone()))
    }
}
