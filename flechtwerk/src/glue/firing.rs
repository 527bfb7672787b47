//! Fires the timers of a bucket that are due (S12.2): before each of its records those that are due by the record, and at
//! its end those that are due by the times of the round. What a firing sets for the past fires as well, before anything
//! else; a function that does so for ever is found out.

use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt;

use super::runner::{Progress, Stop, panicked};
use super::{
    Cause, FailureKind, FiredTimer, Outcome, Params, RawRecord, Stage, TimerPlace, Tried, Trouble, Visit,
};
use crate::codec::Codec;
use crate::record::Headers;
use crate::timers::{Clock, DueBy, MOST, Pending, Timer};

/// Firings of one key in a row of which none is later than an earlier one. All timers of a key may be due at one time.
const STUCK: usize = 10 * MOST;
/// Firings of one key in a row, even where each is later than the one before.
const IN_A_ROW: usize = 1_000_000;

/// Asks the parameters for the earliest timer that is due.
pub struct Due {
    pub(crate) by: DueBy,
    pub(crate) found: Option<Pending>,
}

/// What an `on_timer` function takes first.
pub fn timer<K: Codec>(fired: FiredTimer) -> Tried<Timer<K>> {
    Timer::load(fired)
}

/// What it returned.
pub fn fired<R: Outcome>(returned: R) -> Tried<()> {
    returned.outcome().map_err(|error| (FailureKind::User, error))
}

/// Fires what is due, until nothing is.
pub(super) async fn fire<S: Stage>(
    slots: &mut S::Slots,
    shared: &S::Shared,
    key: &Bytes,
    by: DueBy,
    progress: &mut Progress<'_>,
) -> Result<(), Stop> {
    let (mut latest, mut stuck, mut in_a_row) = (i64::MIN, 0, 0);
    loop {
        let mut due = Due { by, found: None };
        let _ = slots.visit(&mut Visit::Due(&mut due));
        let Some(Pending { name, clock, due }) = due.found else { return Ok(()) };
        let place = || TimerPlace { name: name.clone(), due, clock };
        in_a_row += 1;
        stuck = if due > latest { 0 } else { stuck + 1 };
        latest = latest.max(due);
        if stuck > STUCK || in_a_row > IN_A_ROW {
            return Err(progress.failed_at_timer(place(), endless(in_a_row, by, clock)));
        }
        let _ = slots.visit(&mut Visit::Begin(&nowhere(due)));
        let fired = FiredTimer { key: key.clone(), name: name.clone(), due, clock };
        let called = AssertUnwindSafe(async { S::on_timer(fired, slots, shared).await }).catch_unwind().await;
        let returned = called.unwrap_or_else(|panic| Err(panicked(panic)));
        progress.fired += 1;
        match progress.checked(slots, returned) {
            Ok(bytes) => progress.add(bytes)?,
            Err(trouble) => return Err(progress.failed_at_timer(place(), trouble)),
        }
    }
}

fn endless(in_a_row: usize, by: DueBy, clock: Clock) -> Trouble {
    let (by, now) = match clock {
        Clock::EventTime => (by.event_time, "stream_time()"),
        Clock::WallClock => (by.wall_clock, "now()"),
    };
    let error = format!(
        "timers of one key have fired {in_a_row} times in a row, and one is due again: the function sets timers for what has \
         passed, by the time that it is now ({} ms); set them for later than `timers.{now}`",
        by.unwrap_or_default()
    );
    (FailureKind::EndlessTimers, error.into())
}

/// What outputs take for the record that is being processed: there is none, and the time is that of the timer.
fn nowhere(due: i64) -> RawRecord {
    RawRecord {
        input: Cause::TIMER,
        partition: -1,
        offset: -1,
        timestamp: due,
        key: None,
        value: None,
        headers: Headers::default(),
    }
}
