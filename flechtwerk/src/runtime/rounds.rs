//! One round: what was taken from the queues at once, with the states it needs, run through the stage (S2.4).

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::context::StageContext;
use super::error::{Failure, chain};
use super::host;
use super::messages;
use crate::compact::CompactBytes;
use crate::glue::{Env, Outputs, RawRecord, RoundEnd, Times};
use crate::port::Store;
use crate::task::{Grouped, Overlay, group};
use crate::timers::DueBy;

/// How a round ended.
pub(super) enum Finished {
    Done {
        grouped: Grouped,
        outputs: Outputs,
    },
    /// It made more bytes than the batch has room for: nothing of it counts.
    OverBudget {
        grouped: Grouped,
        outputs: Outputs,
    },
    /// The schemas that its records name are known now, and it may begin.
    Asked,
    Failed(Failure),
}

/// A round whose user code runs.
pub(super) type Running = Pin<Box<dyn Future<Output = Finished> + Send>>;

/// What a round is made of.
pub(super) struct Taken {
    pub(super) records: Vec<RawRecord>,
    /// State keys whose timers are due.
    pub(super) keys: Vec<Bytes>,
    /// By when timers are due, where that is not for the records to say.
    pub(super) due: Option<DueBy>,
}

/// What a round gets from the batch that it is a part of.
pub(super) struct OfBatch {
    /// The version of each table that the batch sees.
    pub(super) env: Env,
    /// Its outputs so far.
    pub(super) outputs: Outputs,
    /// Bytes that it has room for.
    pub(super) budget: usize,
    /// What is known of time.
    pub(super) times: Times,
    /// How long user code has run for it so far.
    pub(super) spent: Duration,
}

/// Why a round did not start.
pub(super) enum NotStarted {
    Store(String),
    Failed(Failure),
}

/// The end of the running round; never, where none runs.
pub(super) async fn next(running: &mut Option<Running>) -> Finished {
    match running {
        Some(round) => round.as_mut().await,
        None => pending().await,
    }
}

/// Groups the records, looks their states up and starts the user's code.
pub(super) fn start(
    context: &Arc<StageContext>,
    partition: i32,
    taken: Taken,
    overlay: &Overlay,
    store: Option<&dyn Store>,
    batch: OfBatch,
) -> Result<Running, NotStarted> {
    let OfBatch { env, mut outputs, budget, times, spent } = batch;
    let Taken { records, keys: timers, due } = taken;
    // Key functions are user code as well.
    let place = match timers.is_empty() {
        true => messages::places(context, partition, &records),
        false => messages::due_timers(partition),
    };
    context.watchdog.start(partition, place, spent);
    host::round(partition, &records);
    let keys = match context.info.custom_key {
        true => Some(custom_keys(context, &records).map_err(NotStarted::Failed)?),
        false => None,
    };
    let mut grouped = group(records, keys.as_deref(), context.info.order);
    grouped.round.times = Times { due: due.unwrap_or(times.due), ..times };
    grouped.add_keys(&timers);
    if context.info.takes_timers() {
        grouped.name_timers();
    }
    if context.changelog.is_some() {
        look_up(context, &mut grouped, overlay, store).map_err(NotStarted::Store)?;
    }
    let context = context.clone();
    Ok(Box::pin(async move {
        let end = context.stage.round(&mut grouped.round, &mut outputs, &env, budget).await;
        match end {
            Ok(RoundEnd::Done) => Finished::Done { grouped, outputs },
            Ok(RoundEnd::OverBudget) => Finished::OverBudget { grouped, outputs },
            Err(crate::glue::Failure { record, timer, kind, error }) => {
                let record = grouped.round.records.get(record);
                Finished::Failed(match (timer, record) {
                    (None, Some(record)) => messages::record_failure(&context, record, &kind, &error),
                    (timer, _) => {
                        messages::timer_failure(&context, partition, timer.as_deref(), &kind, &error)
                    }
                })
            }
        }
    }))
}

fn custom_keys(context: &StageContext, records: &[RawRecord]) -> Result<Vec<Bytes>, Failure> {
    records
        .iter()
        .map(|record| {
            context
                .stage
                .key(record)
                .map_err(|(kind, error)| messages::record_failure(context, record, &kind, &error))
        })
        .collect()
}

/// State and timers of each bucket, as far as the stage has either.
fn look_up(
    context: &StageContext,
    grouped: &mut Grouped,
    overlay: &Overlay,
    store: Option<&dyn Store>,
) -> Result<(), String> {
    let Grouped { round, timer_keys } = grouped;
    if context.info.state().is_some() {
        let states = look_up_each(round.buckets.iter().map(|bucket| &bucket.changelog_key), overlay, store)?;
        round.buckets.iter_mut().zip(states).for_each(|(bucket, state)| bucket.state = state);
    }
    let timers = look_up_each(timer_keys.iter(), overlay, store)?;
    round.buckets.iter_mut().zip(timers).for_each(|(bucket, timers)| bucket.timers = timers);
    Ok(())
}

/// What lies under each key: from the overlay where it is newer than the store, else from the store.
fn look_up_each<'a>(
    keys: impl ExactSizeIterator<Item = &'a CompactBytes>,
    overlay: &Overlay,
    store: Option<&dyn Store>,
) -> Result<Vec<Option<CompactBytes>>, String> {
    let mut values = Vec::with_capacity(keys.len());
    let (mut missing, mut places) = (Vec::with_capacity(keys.len()), Vec::new());
    for key in keys {
        let newer = overlay.get(key);
        if newer.is_none() {
            missing.push(&key[..]);
            places.push(values.len());
        }
        values.push(newer.flatten());
    }
    let Some(store) = store.filter(|_| !missing.is_empty()) else { return Ok(values) };
    let mut found = Vec::with_capacity(missing.len());
    store.get_many(&missing, &mut found).map_err(|error| chain(&error))?;
    places.into_iter().zip(found).for_each(|(place, value)| values[place] = value);
    Ok(values)
}

/// The state that a change is compared with: the one that its round was given.
pub(super) fn before(
    given: Option<CompactBytes>,
    store: Option<&dyn Store>,
    key: &[u8],
) -> Option<CompactBytes> {
    let Some(store) = store.filter(|_| flawed!(UnchangedByStore)) else { return given };
    let mut found = Vec::with_capacity(1);
    store.get_many(&[key], &mut found).ok()?;
    found.pop().flatten()
}

#[cfg(test)]
mod tests;
