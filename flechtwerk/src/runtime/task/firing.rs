//! The part of a task that fires timers which are due while no record of their keys comes (S12.2): behind the rounds of
//! records by event time, and by the wall clock in batches of their own.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Task;
use crate::format::ChangelogRecord;
use crate::glue::StateChange;
use crate::observe::names;
use crate::port::StoreError;
use crate::runtime::error::chain;
use crate::runtime::host;
use crate::runtime::rounds::Taken;
use crate::runtime::timing::Timing;
use crate::task::{Event, Grouped, Layer};
use crate::timers::{Clock, DueBy, STREAM_TIME, encode_stream_time, summary, wall_clock};

impl Task {
    /// Reads what the store says of time, if the stage takes timers.
    pub(super) fn begin_timing(&mut self) {
        if !self.context.info.takes_timers() {
            return;
        }
        self.count_fired(0);
        match Timing::begin(self.store.as_deref()) {
            Ok(timing) => self.timing = Some(timing),
            Err(error) => self.step(Event::StoreFailed { error: chain(&error) }),
        }
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
            Err(error) => self.step(Event::StoreFailed { error: chain(&error) }),
        }
        true
    }

    fn due_by_event_time(&mut self) -> Result<Firing, StoreError> {
        let room = self.room();
        let Some(timing) = &mut self.timing else { return Ok(Firing::Nothing) };
        let Some(time) = timing.stream_time else { return Ok(Firing::Nothing) };
        let keys = timing.due(Clock::EventTime, time, room, &self.overlay, self.store.as_deref())?;
        let wall_clock = timing.wall_clock.then(wall_clock);
        Ok(Firing::of(keys, DueBy { event_time: Some(time), wall_clock }))
    }

    fn due_by_wall_clock(&mut self) -> Result<Firing, StoreError> {
        let room = self.room();
        let Some(timing) = &mut self.timing else { return Ok(Firing::Nothing) };
        let now = wall_clock();
        let interval = self.context.limits.commit_interval;
        if timing.wall_clock || timing.last.is_none_or(|last| host::since(last) >= interval) {
            let keys = timing.due(Clock::WallClock, now, room, &self.overlay, self.store.as_deref())?;
            if !keys.is_empty() {
                if !timing.wall_clock && !self.building.is_empty() {
                    return Ok(Firing::Close);
                }
                timing.wall_clock = true;
                timing.last = Some(host::now());
                let event_time = timing.stream_time;
                return Ok(Firing::of(keys, DueBy { event_time, wall_clock: Some(now) }));
            }
        }
        // What was begun is a batch of its own.
        match std::mem::take(&mut timing.wall_clock) && !self.building.is_empty() {
            true => Ok(Firing::Close),
            false => Ok(Firing::Nothing),
        }
    }

    /// When the next timer of the wall clock may be due.
    pub(super) fn next_timer_at(&self) -> Option<Instant> {
        let timing = self.timing.as_ref()?;
        let wait = timing.next(Clock::WallClock).saturating_sub(wall_clock()).max(0);
        let due = host::now().checked_add(Duration::from_millis(wait as u64))?;
        Some(timing.last.map_or(due, |last| due.max(last + self.context.limits.commit_interval)))
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

impl Firing {
    fn of(keys: Vec<Bytes>, due: DueBy) -> Firing {
        if keys.is_empty() { Firing::Nothing } else { Firing::Round(keys, due) }
    }
}
