//! Runs a stage over a round. A bucket whose future is ready at its first poll costs no allocation for it: one pinned
//! place takes the future of each bucket in turn, and only a future that has to wait keeps its place and moves into a
//! [`FuturesUnordered`]. The buffers of outputs are passed on from bucket to bucket.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::policy::{self, Decoded, Note};
use super::{
    Bucket, Closing, Env, Failure, FailureKind, Mark, Opening, Outputs, RawRecord, Round, RoundEnd, Stage,
    StateChange,
};
use super::{Outcome, Params, SharedParams, Trouble, Visit};
use crate::out::Buffer;

/// Why a round stopped.
enum Stop {
    Failed(Failure),
    OverBudget,
}

impl Stop {
    fn at(record: usize) -> impl FnOnce(Trouble) -> Stop {
        move |(kind, error)| Stop::Failed(Failure { record, kind, error })
    }
}

/// Bytes that the round has made so far. Its buckets all run in one task; an atomic without any ordering is a plain
/// number that the futures can share and still be sent to another thread.
struct Meter {
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
        return Err(Failure { record: 0, kind: FailureKind::User, error });
    };
    let mark = Some(outputs.mark());
    let mut undo = Undo { outputs, mark };
    let limit = if round.records.len() > 1 { budget } else { usize::MAX };
    let meter = Meter { used: AtomicUsize::new(0), limit };
    match drive::<S>(&round.records, &mut round.buckets, undo.outputs, env, &shared, &meter).await {
        Ok(()) => {
            undo.mark = None;
            Ok(RoundEnd::Done)
        }
        Err(stop) => {
            for bucket in &mut round.buckets {
                bucket.change = StateChange::Unchanged;
            }
            match stop {
                Stop::Failed(failure) => Err(failure),
                Stop::OverBudget => Ok(RoundEnd::OverBudget),
            }
        }
    }
}

async fn drive<S: Stage>(
    records: &[RawRecord],
    buckets: &mut [Bucket],
    outputs: &mut Outputs,
    env: &Env,
    shared: &S::Shared,
    meter: &Meter,
) -> Result<(), Stop> {
    let mut end =
        End { pool: Vec::new(), scratch: Vec::new(), states: BytesMut::new(), outputs, records, env, meter };
    let mut waiting = FuturesUnordered::new();
    let mut place = None;
    for index in 0..buckets.len() {
        let bucket = &mut buckets[index];
        bucket.change = StateChange::Unchanged;
        let slots = open::<S>(bucket, &mut end.pool)?;
        let (own, first) = (&records[bucket.records.clone()], bucket.records.start);
        let key = (S::INFO.custom_key && S::INFO.policy.named).then(|| bucket.key.clone());
        let future = process::<S>(index, slots, shared, own, first, key, meter);
        let mut running = match place.take() {
            Some(place) => Place::refill(place, future),
            None => Place(Box::pin(Some(future))),
        };
        match poll_fn(|cx| Poll::Ready(running.poll_unpin(cx))).await {
            Poll::Ready(done) => {
                let (index, slots, notes) = done?;
                end.close::<S>(&mut buckets[index], slots, notes)?;
                place = Some(running);
            }
            Poll::Pending => waiting.push(running),
        }
    }
    while let Some(done) = waiting.next().await {
        let (index, slots, notes) = done?;
        end.close::<S>(&mut buckets[index], slots, notes)?;
    }
    Ok(())
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

fn open<S: Stage>(bucket: &Bucket, pool: &mut Vec<Buffer>) -> Result<S::Slots, Stop> {
    let mut opening = Opening { stored: bucket.state.as_ref(), outputs: 0, pool };
    caught(|| S::Slots::open(&mut opening)).map_err(Stop::at(bucket.records.start))
}

/// What is left of a bucket: its index, its parameters, and what is to be noted of records that did not decode.
type Processed<S> = (usize, <S as Stage>::Slots, Vec<Note>);

/// Processes the records of a bucket, one after another; gives the parameters back for [`End::close`].
async fn process<S: Stage>(
    index: usize,
    mut slots: S::Slots,
    shared: &S::Shared,
    records: &[RawRecord],
    first: usize,
    key: Option<Bytes>,
    meter: &Meter,
) -> Result<Processed<S>, Stop> {
    let mut waiting = 0;
    let mut notes = Vec::new();
    for (n, raw) in records.iter().enumerate() {
        let _ = slots.visit(&mut Visit::Begin(raw));
        let step = async {
            let input = match policy::decode::<S>(raw, first + n, key.as_ref())? {
                Decoded::Input(input) => input,
                Decoded::Instead(input) => {
                    notes.push(Note::instead(first + n));
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
        // What could not be encoded came before what the function returned.
        let mut bytes = 0;
        let checked = match slots.visit(&mut Visit::Check(&mut bytes)) {
            Err(trouble) if !matches!(returned, Err((FailureKind::Panic, _))) => Err(trouble),
            checked => returned.and(checked),
        };
        checked.map_err(Stop::at(first + n))?;
        meter.add(bytes - waiting)?;
        waiting = bytes;
    }
    Ok((index, slots, notes))
}

/// What is needed to end buckets.
struct End<'a> {
    pool: Vec<Buffer>,
    scratch: Vec<u8>,
    states: BytesMut,
    outputs: &'a mut Outputs,
    records: &'a [RawRecord],
    env: &'a Env,
    meter: &'a Meter,
}

impl End<'_> {
    fn close<S: Stage>(
        &mut self,
        bucket: &mut Bucket,
        mut slots: S::Slots,
        notes: Vec<Note>,
    ) -> Result<(), Stop> {
        let last = bucket.records.end.saturating_sub(1);
        let mut closing = Closing {
            stored: bucket.state.as_ref(),
            change: &mut bucket.change,
            outputs: self.outputs,
            pool: &mut self.pool,
            scratch: &mut self.scratch,
            states: &mut self.states,
        };
        caught(|| slots.visit(&mut Visit::Close(&mut closing))).map_err(Stop::at(last))?;
        for note in notes {
            let raw = &self.records[note.record];
            self.meter.add(note.write::<S>(raw, self.env, self.outputs))?;
        }
        match &bucket.change {
            StateChange::Unchanged => Ok(()),
            StateChange::Deleted => self.meter.add(bucket.key.len()),
            StateChange::Set(state) => self.meter.add(bucket.key.len() + state.len()),
        }
    }
}

/// Calls code that runs the user's: codecs, `Serialize`, key functions.
pub(super) fn caught<T>(call: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(panic)))
}

pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Trouble {
    let message = match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => {
            panic.downcast::<&'static str>().map_or("(no message)".to_owned(), |text| (*text).to_owned())
        }
    };
    (FailureKind::Panic, message.into())
}
