//! Runs a stage over a round. A bucket whose future is ready at its first poll costs no allocation for it: one pinned
//! place takes the future of each bucket in turn, and only a future that has to wait keeps its place and moves into a
//! [`FuturesUnordered`]. The buffers of outputs are passed on from bucket to bucket.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::firing::fire;
use super::policy::{self, Decoded, Note};
use super::{
    Bucket, Closing, Env, Failure, FailureKind, Mark, Opening, Outputs, RawRecord, Round, RoundEnd, Stage,
    StateChange, TimerPlace, Times,
};
use super::{Outcome, Params, SharedParams, Tried, Trouble, Visit};
use crate::out::Pool;
use crate::timers::DueBy;

/// Why a round stopped.
pub(super) enum Stop {
    Failed(Failure),
    OverBudget,
}

impl Stop {
    fn at(record: usize) -> impl FnOnce(Trouble) -> Stop {
        move |(kind, error)| Stop::Failed(Failure { record, timer: None, kind, error })
    }
}

/// Bytes that the round has made so far. Its buckets all run in one task; an atomic without any ordering is a plain
/// number that the futures can share and still be sent to another thread.
pub(super) struct Meter {
    used: AtomicUsize,
    limit: usize,
}

impl Meter {
    fn add(&self, bytes: usize) -> Result<(), Stop> {
        let used = self.used.load(Ordering::Relaxed).saturating_add(bytes);
        self.used.store(used, Ordering::Relaxed);
        if used > self.limit { Err(Stop::OverBudget) } else { Ok(()) }
    }
}

/// How far a bucket is.
pub(super) struct Progress<'a> {
    meter: &'a Meter,
    /// Index of the record that is processed, or was last.
    record: usize,
    /// Bytes that wait in the parameters.
    waiting: usize,
    /// Timers that fired.
    pub(super) fired: u64,
}

impl Progress<'_> {
    /// What a call came to: bytes that wait in the parameters now. What could not be encoded came before what the function
    /// returned.
    pub(super) fn checked<P: Params>(&self, slots: &mut P, returned: Tried<()>) -> Tried<usize> {
        let mut bytes = 0;
        match slots.visit(&mut Visit::Check(&mut bytes)) {
            Err(trouble) if !matches!(returned, Err((FailureKind::Panic, _))) => Err(trouble),
            checked => returned.and(checked).map(|()| bytes),
        }
    }

    pub(super) fn add(&mut self, bytes: usize) -> Result<(), Stop> {
        self.meter.add(bytes - self.waiting)?;
        self.waiting = bytes;
        Ok(())
    }

    pub(super) fn failed_at_timer(&self, timer: TimerPlace, (kind, error): Trouble) -> Stop {
        Stop::Failed(Failure { record: self.record, timer: Some(Box::new(timer)), kind, error })
    }
}

/// Takes back what a round left in `outputs`, unless it is told that the round counts; also where the round's future is
/// dropped halfway.
struct Undo<'a> {
    outputs: &'a mut Outputs,
    mark: Option<Mark>,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if let Some(mark) = self.mark {
            self.outputs.truncate(mark);
        }
    }
}

pub(super) async fn run<S: Stage>(
    round: &mut Round,
    outputs: &mut Outputs,
    env: &Env,
    budget: usize,
) -> Result<RoundEnd, Failure> {
    let Some(shared) = S::Shared::open(env) else {
        let error = "a parameter that the stages share was never made".into();
        return Err(Failure { record: 0, timer: None, kind: FailureKind::User, error });
    };
    let mark = Some(outputs.mark());
    let mut undo = Undo { outputs, mark };
    let limit = if round.records.len().max(round.buckets.len()) > 1 { budget } else { usize::MAX };
    let meter = Meter { used: AtomicUsize::new(0), limit };
    let of_round = OfRound { records: &round.records, times: round.times, shared: &shared, meter: &meter };
    match drive::<S>(&of_round, &mut round.buckets, undo.outputs, env).await {
        Ok(()) => {
            undo.mark = None;
            Ok(RoundEnd::Done)
        }
        Err(stop) => {
            round.buckets.iter_mut().for_each(untouched);
            match stop {
                Stop::Failed(failure) => Err(failure),
                Stop::OverBudget => Ok(RoundEnd::OverBudget),
            }
        }
    }
}

/// What all buckets of a round share.
struct OfRound<'a, H> {
    records: &'a [RawRecord],
    times: Times,
    shared: &'a H,
    meter: &'a Meter,
}

/// Forgets what an earlier run of the round has filled in.
fn untouched(bucket: &mut Bucket) {
    bucket.change = StateChange::Unchanged;
    bucket.timers_change = StateChange::Unchanged;
    bucket.fired = 0;
}

async fn drive<S: Stage>(
    round: &OfRound<'_, S::Shared>,
    buckets: &mut [Bucket],
    outputs: &mut Outputs,
    env: &Env,
) -> Result<(), Stop> {
    let OfRound { records, meter, .. } = *round;
    let mut end = End { pool: Pool::new(), scratch: Vec::new(), outputs, records, env, meter };
    let mut waiting = FuturesUnordered::new();
    let mut place = None;
    for index in 0..buckets.len() {
        let bucket = &mut buckets[index];
        untouched(bucket);
        let slots = open::<S>(bucket, round.times, &mut end.pool)?;
        let future = process::<S>(index, slots, round, bucket.records.clone(), needed_key::<S>(bucket));
        let mut running = match place.take() {
            Some(place) => Place::refill(place, future),
            None => Place(Box::pin(Some(future))),
        };
        match poll_fn(|cx| Poll::Ready(running.poll_unpin(cx))).await {
            Poll::Ready(done) => {
                end.close::<S>(buckets, done?)?;
                place = Some(running);
            }
            Poll::Pending => waiting.push(running),
        }
    }
    while let Some(done) = waiting.next().await {
        end.close::<S>(buckets, done?)?;
    }
    Ok(())
}

/// The bucket's key, where its processing needs it.
fn needed_key<S: Stage>(bucket: &Bucket) -> Option<Bytes> {
    let needed = (S::INFO.custom_key && S::INFO.policy.named) || S::INFO.takes_timers();
    needed.then(|| Bytes::copy_from_slice(bucket.key()))
}

/// A pinned place for one future after another.
struct Place<F>(Pin<Box<Option<F>>>);

impl<F> Place<F> {
    fn refill(mut self, future: F) -> Self {
        self.0.set(Some(future));
        self
    }
}

impl<F: Future> Future for Place<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.0.as_mut().as_pin_mut() {
            Some(future) => future.poll(cx),
            None => unreachable!("a place is polled only while it holds a future"),
        }
    }
}

fn open<S: Stage>(bucket: &Bucket, times: Times, pool: &mut Pool) -> Result<S::Slots, Stop> {
    let (stored, timers) = (bucket.state.as_deref(), bucket.timers.as_deref());
    let mut opening = Opening { stored, timers, times, outputs: 0, pool };
    caught(|| S::Slots::open(&mut opening)).map_err(Stop::at(bucket.records.start))
}

/// What is left of a bucket.
struct Processed<S: Stage> {
    index: usize,
    slots: S::Slots,
    /// What is to be noted of records that did not decode.
    notes: Vec<Note>,
    /// Timers that fired.
    fired: u64,
}

/// Processes the records of a bucket, one after another, and its timers that are due between them and behind them; gives
/// the parameters back for [`End::close`].
async fn process<S: Stage>(
    index: usize,
    mut slots: S::Slots,
    round: &OfRound<'_, S::Shared>,
    records: Range<usize>,
    key: Option<Bytes>,
) -> Result<Processed<S>, Stop> {
    let OfRound { shared, meter, .. } = *round;
    let mut progress = Progress { meter, record: records.start, waiting: 0, fired: 0 };
    let mut notes = Vec::new();
    let timed = key.as_ref().filter(|_| S::INFO.takes_timers());
    let keyed = key.as_ref().filter(|_| S::INFO.custom_key);
    for record in records {
        let raw = &round.records[record];
        progress.record = record;
        if let Some(key) = timed {
            let by = DueBy { event_time: Some(raw.timestamp), wall_clock: None };
            fire::<S>(&mut slots, shared, key, by, &mut progress).await?;
        }
        let _ = slots.visit(&mut Visit::Begin(raw));
        let step = async {
            let input = match policy::decode::<S>(raw, record, keyed)? {
                Decoded::Input(input) => input,
                Decoded::Instead(input) => {
                    notes.push(Note::instead(record));
                    input
                }
                Decoded::Left(note) => {
                    notes.push(note);
                    return Ok(());
                }
            };
            let returned = S::call(input, &mut slots, shared).await;
            returned.outcome().map_err(|error| (FailureKind::User, error))
        };
        let stepped = AssertUnwindSafe(step).catch_unwind().await;
        let returned = stepped.unwrap_or_else(|panic| Err(panicked(panic)));
        let bytes = progress.checked(&mut slots, returned).map_err(Stop::at(record))?;
        progress.add(bytes)?;
    }
    if let Some(key) = timed {
        fire::<S>(&mut slots, shared, key, round.times.due, &mut progress).await?;
    }
    Ok(Processed { index, slots, notes, fired: progress.fired })
}

/// What is needed to end buckets.
struct End<'a> {
    pool: Pool,
    scratch: Vec<u8>,
    outputs: &'a mut Outputs,
    records: &'a [RawRecord],
    env: &'a Env,
    meter: &'a Meter,
}

impl End<'_> {
    fn close<S: Stage>(&mut self, buckets: &mut [Bucket], done: Processed<S>) -> Result<(), Stop> {
        let Processed { index, mut slots, notes, fired } = done;
        let bucket = &mut buckets[index];
        bucket.fired = fired;
        let last = bucket.records.end.saturating_sub(1);
        let mut closing = Closing {
            stored: bucket.state.as_deref(),
            change: &mut bucket.change,
            stored_timers: bucket.timers.as_deref(),
            timers_change: &mut bucket.timers_change,
            outputs: self.outputs,
            pool: &mut self.pool,
            scratch: &mut self.scratch,
        };
        caught(|| slots.visit(&mut Visit::Close(&mut closing))).map_err(Stop::at(last))?;
        for note in notes {
            let raw = &self.records[note.record];
            self.meter.add(note.write::<S>(raw, self.env, self.outputs))?;
        }
        for change in [&bucket.change, &bucket.timers_change] {
            match change {
                StateChange::Unchanged => {}
                StateChange::Deleted => self.meter.add(bucket.changelog_key.len())?,
                StateChange::Set(value) => self.meter.add(bucket.changelog_key.len() + value.len())?,
            }
        }
        Ok(())
    }
}

/// Calls code that runs the user's: codecs, `Serialize`, key functions.
pub(super) fn caught<T>(call: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(panic)))
}

/// What a panic of the user's code is.
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Trouble {
    let message = match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => {
            panic.downcast::<&'static str>().map_or("(no message)".to_owned(), |text| (*text).to_owned())
        }
    };
    (FailureKind::Panic, message.into())
}
