//! The part of a task that fires timers which are due while no record of their keys comes (S12.2): behind the rounds of
//! records by event time, and by the wall clock in batches of their own.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Task;
use crate::format::ChangelogRecord;
use crate::glue::StateChange;
use crate::observe::names;
use crate::port::StoreError;
use crate::runtime::host;
use crate::runtime::rounds::Taken;
use crate::runtime::timing::Timing;
use crate::task::{Grouped, Layer};
use crate::timers::{Clock, DueBy, STREAM_TIME, encode_stream_time, summary, wall_clock};

impl Task {
    /// Reads what the store says of time, if the stage takes timers.
    pub(super) fn begin_timing(&mut self) -> Result<(), StoreError> {
        if self.context.info.takes_timers() {
            self.count_fired(0);
            self.timing = Some(Timing::begin(self.store.as_deref())?);
        }
        Ok(())
    }

    /// Starts a round of timers that are due by the stream time as it is now. True if it did something.
    pub(super) fn fire_by_event_time(&mut self) -> bool {
        let firing = self.due_by_event_time();
        self.fire(firing)
    }

    /// Starts a round of timers that are due by the wall clock, or closes a batch that is in the way. True if it did
    /// something.
    pub(super) fn fire_by_wall_clock(&mut self) -> bool {
        let firing = self.due_by_wall_clock();
        self.fire(firing)
    }

    fn fire(&mut self, firing: Result<Firing, StoreError>) -> bool {
        match firing {
            Ok(Firing::Nothing) => return false,
            Ok(Firing::Round(keys, due)) => self.start(Taken { records: Vec::new(), keys, due: Some(due) }),
            Ok(Firing::Close) => self.close(),
            Err(error) => self.store_failed(&error),
        }
        true
    }

    fn due_by_event_time(&mut self) -> Result<Firing, StoreError> {
        let room = self.room();
        let Some(timing) = &mut self.timing else { return Ok(Firing::Nothing) };
        let Some(time) = timing.stream_time else { return Ok(Firing::Nothing) };
        let keys = timing.due(Clock::EventTime, time, room, &self.overlay, self.store.as_deref())?;
        let due = DueBy { event_time: Some(time), wall_clock: timing.turns.batch() };
        Ok(if keys.is_empty() { Firing::Nothing } else { Firing::Round(keys, due) })
    }

    fn due_by_wall_clock(&mut self) -> Result<Firing, StoreError> {
        let room = self.room();
        let Some(timing) = &mut self.timing else { return Ok(Firing::Nothing) };
        let now = host::now();
        let interval = self.context.limits.commit_interval;
        let Some(by) = timing.turns.due_by((wall_clock(), now), interval) else { return Ok(Firing::Nothing) };
        let keys = timing.due(Clock::WallClock, by, room, &self.overlay, self.store.as_deref())?;
        let begun = timing.turns.batch().is_some();
        if keys.is_empty() {
            timing.turns.none_due();
            // What was begun is a batch of its own. It is empty where a timer was no longer there to fire.
            return Ok(match begun {
                true if self.building.is_empty() => {
                    timing.turns.closed();
                    Firing::Nothing
                }
                true => Firing::Close,
                false => Firing::Nothing,
            });
        }
        if !begun && !self.building.is_empty() {
            return Ok(Firing::Close);
        }
        timing.turns.fires(by, keys.len() >= room, now);
        Ok(Firing::Round(keys, DueBy { event_time: timing.stream_time, wall_clock: Some(by) }))
    }

    /// A round of records is done, or there are none now. True if timers of the wall clock have waited for that.
    pub(super) fn records_had_their_turn(&mut self) -> bool {
        self.timing.as_mut().is_some_and(|timing| timing.turns.records())
    }

    /// When the next timer of the wall clock may be due.
    pub(super) fn next_timer_at(&self) -> Option<Instant> {
        let timing = self.timing.as_ref()?;
        let wait = timing.next(Clock::WallClock).saturating_sub(wall_clock()).max(0);
        let due = host::now().checked_add(Duration::from_millis(wait as u64))?;
        Some(timing.turns.next_at(self.context.limits.commit_interval).map_or(due, |next| due.max(next)))
    }

    /// Takes over what a round did to timers.
    pub(super) fn timers_changed(&mut self, grouped: &mut Grouped) {
        let Some(timing) = &mut self.timing else { return };
        timing.stream_time = grouped.round.times.stream_time;
        for (bucket, key) in grouped.round.buckets.iter_mut().zip(grouped.timer_keys.drain(..)) {
            self.building.fired += bucket.fired;
            let change = std::mem::replace(&mut bucket.timers_change, StateChange::Unchanged);
            if let StateChange::Set(timers) = &change
                && let Ok(timers) = summary(timers)
            {
                timing.set(timers);
            }
            self.overlay.change(key, bucket.timers.take(), change);
        }
    }

    /// The changes of the batch being built, which ends with this. Every transaction of a stage that takes timers carries the
    /// stream time as well.
    pub(super) fn close_layer(&mut self) -> Layer {
        let mut layer = self.overlay.close();
        if let Some(time) = self.timing.as_ref().and_then(|timing| timing.stream_time) {
            let value = Some(encode_stream_time(time)[..].into());
            layer.note(ChangelogRecord { key: STREAM_TIME.into(), value });
        }
        layer
    }

    /// Timers have fired, and their transaction has committed.
    pub(super) fn count_fired(&self, fired: u64) {
        if self.context.info.takes_timers() {
            names::timers_fired(self.context.info.name, self.partition).increment(fired);
        }
    }
}

/// What is to be done about timers.
enum Firing {
    Nothing,
    /// A round of these keys.
    Round(Vec<Bytes>, DueBy),
    /// The batch must be closed first.
    Close,
}
