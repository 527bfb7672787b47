//! What a task knows of time (S12.2): stream time, and before when no timer can be due, so that a round asks the store for
//! timers only where there may be some.

use std::time::Instant;

use bytes::Bytes;

use crate::format::{self, Kind};
use crate::glue::{RawRecord, Times};
use crate::port::{Store, StoreError};
use crate::task::Overlay;
use crate::timers::{Clock, DueBy, STREAM_TIME, Summary, decode_stream_time, wall_clock};

/// See the module.
#[derive(Default)]
pub(super) struct Timing {
    /// The largest timestamp of a record whose round is done.
    pub(super) stream_time: Option<i64>,
    /// For each clock: no pending timer is due before, in the store or above it.
    next: [i64; 2],
    /// The batch being built is one of the wall clock: it takes no records.
    pub(super) wall_clock: bool,
    /// When the last such batch was begun.
    pub(super) last: Option<Instant>,
}

impl Timing {
    /// As a task begins, or begins anew, with what the store says.
    pub(super) fn begin(store: Option<&dyn Store>) -> Result<Timing, StoreError> {
        let mut found = Vec::new();
        if let Some(store) = store {
            store.get_many(&[STREAM_TIME], &mut found)?;
        }
        // It was read strictly when it was restored.
        let stream_time =
            found.into_iter().flatten().next().and_then(|value| decode_stream_time(&value).ok());
        Ok(Timing { stream_time, ..Timing::default() })
    }

    /// The times of a round of these records.
    pub(super) fn of(&self, records: &[RawRecord]) -> Times {
        let taken = records.iter().map(|record| record.timestamp).filter(|timestamp| *timestamp >= 0).max();
        let stream_time = self.stream_time.max(taken);
        let due = DueBy { event_time: stream_time, wall_clock: None };
        Times { stream_time, now: wall_clock(), due }
    }

    /// Timers of some key are these now.
    pub(super) fn set(&mut self, timers: Summary) {
        for (clock, due) in timers.due() {
            let next = &mut self.next[usize::from(clock.byte())];
            *next = (*next).min(due);
        }
    }

    /// Before when no timer is due.
    pub(super) fn next(&self, clock: Clock) -> i64 {
        self.next[usize::from(clock.byte())]
    }

    /// State keys of which a timer is due by then, at most `room`. None: also none is before a time that is known now.
    pub(super) fn due(
        &mut self,
        clock: Clock,
        by: i64,
        room: usize,
        overlay: &Overlay,
        store: Option<&dyn Store>,
    ) -> Result<Vec<Bytes>, StoreError> {
        let from = self.next(clock);
        if by < from {
            return Ok(Vec::new());
        }
        let mut keys = Vec::new();
        let mut first = i64::MAX;
        for (due, key) in overlay.due(clock) {
            first = first.min(due);
            if due <= by && keys.len() < room {
                keys.push(key.slice(1..));
            }
        }
        if let Some(store) = store {
            let mut timers = Vec::new();
            store.due(clock, from, &mut |due, key| {
                timers.clear();
                format::put_key(Kind::Timer, key, &mut timers);
                if overlay.get(&timers).is_some() {
                    // What the store has is out of date.
                    return true;
                }
                first = first.min(due);
                if due <= by && keys.len() < room {
                    keys.push(Bytes::copy_from_slice(key));
                    return true;
                }
                false
            })?;
        }
        self.next[usize::from(clock.byte())] = first;
        Ok(keys)
    }
}
