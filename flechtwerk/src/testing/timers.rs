//! The timers of a stage in a partition, and the times by which they fire.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Driver;
use crate::compact::CompactBytes;
use crate::glue::{Bucket, RawRecord, Round, StageInfo, StateChange, Times};
use crate::timers::{Clock, DueBy, Pending, decode, summary};

impl Driver {
    /// Lets stream time go on to this time, in milliseconds since the epoch, in all stages and partitions, as if a record
    /// with this timestamp had come: timers of event time that are due by then fire with the next [`run`](Driver::run). It
    /// never goes back.
    pub fn advance_stream_time(&mut self, to: i64) {
        for timed in self.stages.iter_mut().flat_map(|stage| &mut stage.timed) {
            timed.stream_time = timed.stream_time.max(Some(to));
        }
    }

    /// Sets the wall clock, in milliseconds since the epoch: timers that are due by then fire with the next
    /// [`run`](Driver::run), with `Timers::now` at this time. Before, it is at zero. It never goes back.
    pub fn advance_wall_clock(&mut self, to: i64) {
        self.now = self.now.max(to);
    }

    /// The timers that a stage has set for a state key and that have not fired, in the order of their names: name, clock and
    /// due time. If several partitions have some (only a `key` function can do that), they are those of the first.
    ///
    /// # Panics
    ///
    /// If there is no such stage.
    #[track_caller]
    pub fn timers(&self, stage: &str, key: impl AsRef<[u8]>) -> Vec<(String, Clock, i64)> {
        let stored = self.stage(stage).timed.iter().find_map(|timed| timed.timers.get(key.as_ref()));
        let timers = stored.map(|stored| decode(stored).unwrap_or_default()).unwrap_or_default();
        timers.into_iter().map(|Pending { name, clock, due }| (name, clock, due)).collect()
    }
}

/// What one partition of a stage knows of time.
#[derive(Default)]
pub(super) struct Timed {
    /// By state key, as they would be stored.
    timers: BTreeMap<Bytes, CompactBytes>,
    stream_time: Option<i64>,
}

impl Timed {
    /// What is due already fires before any record is taken.
    pub(super) fn is_behind(&self) -> bool {
        self.timers
            .values()
            .any(|stored| is_due(stored, DueBy { event_time: self.stream_time, wall_clock: None }))
    }

    /// The times of a round of these records. Without any it is one of the wall clock.
    pub(super) fn times(&self, info: &StageInfo, records: &[RawRecord], now: i64) -> Times {
        if !info.takes_timers() {
            return Times::default();
        }
        let taken = records.iter().map(|record| record.timestamp).filter(|timestamp| *timestamp >= 0).max();
        let stream_time = self.stream_time.max(taken);
        let wall_clock = records.is_empty().then_some(now);
        Times { stream_time, now, due: DueBy { event_time: stream_time, wall_clock } }
    }

    /// Gives the round its times and the timers of its keys, and those of other keys that are due.
    pub(super) fn join(&self, round: &mut Round, times: Times) {
        round.times = times;
        for bucket in &mut round.buckets {
            bucket.timers = self.timers.get(bucket.key()).cloned();
        }
        let end = round.records.len();
        for (key, stored) in self.timers.iter().filter(|(_, stored)| is_due(stored, times.due)) {
            if round.buckets.iter().all(|bucket| bucket.key() != key) {
                let timers = Some(stored.clone());
                round.buckets.push(Bucket { timers, ..Bucket::of(key, end..end) });
            }
        }
    }

    /// A round counts.
    pub(super) fn done(&mut self, round: &mut Round) {
        self.stream_time = round.times.stream_time.or(self.stream_time);
        for bucket in &mut round.buckets {
            match std::mem::replace(&mut bucket.timers_change, StateChange::Unchanged) {
                StateChange::Unchanged => {}
                StateChange::Set(timers) => {
                    drop(self.timers.insert(Bytes::copy_from_slice(bucket.key()), timers))
                }
                StateChange::Deleted => drop(self.timers.remove(bucket.key())),
            }
        }
    }
}

fn is_due(stored: &[u8], by: DueBy) -> bool {
    summary(stored)
        .is_ok_and(|summary| summary.due().any(|(clock, due)| by.of(clock).is_some_and(|by| due <= by)))
}
