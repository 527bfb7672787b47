//! Restores a task's store from its changelog partition (S4 step 4).

use std::sync::Arc;
use std::time::Duration;

use super::context::{Cancel, Changelog, StageContext};
use super::error::Failure;
use super::host;
use super::topic_watch::TopicWatch;
use crate::format::{self, ChangelogRecord};
use crate::glue::{RawRecord, StageInfo};
use crate::port::{Store, StoreError, TopicPartition};
use crate::state::known_versions;
use crate::timers::{self, ListError};

/// Records taken from the queue at once.
const CHUNK_RECORDS: usize = 10_000;
/// Bytes taken from the queue at once.
const CHUNK_BYTES: usize = 4 << 20;
/// How long to wait for more before looking at the cancel flag again.
const WAIT: Duration = Duration::from_millis(100);

/// Why a restore did not finish.
pub(super) enum Unrestored {
    Cancelled,
    Store(StoreError),
    Failed(Failure),
}

/// Wipes the store and fills it with the changelog partition up to `end`. `idle` is called before each wait for more.
pub(super) fn restore(
    context: &StageContext,
    store: &dyn Store,
    at: &TopicPartition,
    end: i64,
    stamp: Option<&str>,
    cancel: &Cancel,
    mut idle: impl FnMut(),
) -> Result<bool, Unrestored> {
    crash_point!(BeforeRestore);
    store.wipe().map_err(Unrestored::Store)?;
    crash_point!(RestoreStart);
    let reader = context.changelogs.as_ref().ok_or_else(|| {
        Unrestored::Failed(Failure::new(format!("stage {}: has no changelog reader", context.info.name)))
    })?;
    let low = context
        .retry(&format!("read the beginning of changelog {at}"), cancel, || {
            reader.watermarks(at, Duration::from_secs(5))
        })
        .map_err(Unrestored::Failed)?
        .ok_or(Unrestored::Cancelled)?
        .low;
    let mut position = low;
    if position < end {
        let progress = context.progress.begin(context.info.name, at.partition, (end - low).max(0) as u64);
        let parker = Parker::new();
        // The queue of an earlier task of this partition may still be closing.
        let opened =
            context.retry(&format!("read changelog {at}"), cancel, || reader.open(at, 0, low, parker.wake()));
        let mut queue = opened.map_err(Unrestored::Failed)?.ok_or(Unrestored::Cancelled)?;
        let mut records: Vec<RawRecord> = Vec::with_capacity(CHUNK_RECORDS);
        let mut changes: Vec<ChangelogRecord> = Vec::with_capacity(CHUNK_RECORDS);
        let mut nothing = false;
        // Nobody else says that it is gone, or another one by now: nothing would come any more.
        let who = format!("stage {}", context.info.name);
        let mut watch = context.changelog.as_ref().map(|Changelog { topic, id, .. }| {
            let anew = "the state in the old one is lost; `check` says what to do".to_owned();
            TopicWatch::of(reader, topic, id, context.limits.broker_timeout, anew)
        });
        while position < end {
            if nothing {
                if let Some(watch) = &mut watch {
                    watch.look(&who).map_err(Unrestored::Failed)?;
                }
                idle();
                parker.wait(WAIT);
            }
            if cancel.is_cancelled() {
                return Err(Unrestored::Cancelled);
            }
            records.clear();
            let taken = queue.take(CHUNK_RECORDS, CHUNK_BYTES, &mut records).map_err(|error| {
                Unrestored::Failed(Failure::broker(
                    context.info.name,
                    &format!("read changelog {at}"),
                    &error,
                ))
            })?;
            changes.clear();
            for record in records.drain(..).filter(|record| record.offset < end) {
                position = position.max(record.offset + 1);
                changes.push(change(context.info, at, record).map_err(Unrestored::Failed)?);
            }
            // The end-of-partition event covers trailing markers and aborted records; one below the end finishes
            // nothing.
            position = position.max(taken.end.unwrap_or(0).min(end));
            if taken.end.is_some() && flawed!(RestoreStopsEarly) {
                position = end;
            }
            if taken.records > 0 {
                store.restore(&changes).map_err(Unrestored::Store)?;
                crash_point!(RestoreMiddle if position < end);
            }
            // Also where only markers were left: without it nobody would hear that the restore has ended.
            progress.advance(taken.records as u64, taken.bytes as u64, (end - position).max(0) as u64);
            nothing = taken.records == 0;
        }
    }
    crash_point!(RestoreEnd);
    store.restored(stamp).map_err(Unrestored::Store)?;
    crash_point!(AfterRestore);
    store.is_empty().map_err(Unrestored::Store)
}

/// A changelog record as a change of the store, its format checked while its place is known.
pub(crate) fn change(
    info: &StageInfo,
    at: &TopicPartition,
    record: RawRecord,
) -> Result<ChangelogRecord, Failure> {
    let place = || format!("stage {}: the changelog at {at} offset {}", info.name, record.offset);
    let key = record.key.clone().ok_or_else(|| {
        Failure::new(format!("{} has a record without a key, which Flechtwerk never writes", place()))
    })?;
    let (kind, _) = format::decode_key(&key)
        .map_err(|error| Failure::new(format!("{} can't be read: {error}", place())))?;
    let unknown = |what: &str, error: ListError| match error {
        ListError::UnknownVersion(version) => Failure::new(format!(
            "{} holds {what} of version {version}, but this program knows version 1; run a program that knows it, or begin \
             without timers and state: `reset` the stage, or give it another application_id",
            place()
        )),
        error => Failure::new(format!("{} holds {what} that can't be read: {error}", place())),
    };
    match (kind, &record.value) {
        (format::Kind::Timer, Some(value)) => {
            timers::summary(value).map_err(|error| unknown("timers", error))?;
        }
        (format::Kind::Task, Some(value)) if key == timers::STREAM_TIME => {
            timers::decode_stream_time(value).map_err(|error| unknown("a stream time", error))?;
        }
        _ => {}
    }
    if let (format::Kind::State, Some(value), Some(state)) = (kind, &record.value, info.state()) {
        let (version, _) = format::take_version(value)
            .map_err(|error| Failure::new(format!("{} can't be read: {error}", place())))?;
        if !(state.oldest..=state.version).contains(&version) {
            return Err(Failure::new(format!(
                "{} holds state of version {version}, but this program knows {} of {}; run a program \
                 that knows it, or begin with empty state: `reset` the stage, or give it another application_id",
                place(),
                known_versions(state.oldest, state.version),
                state.type_name,
            )));
        }
    }
    Ok(ChangelogRecord { key: key.into(), value: record.value.map(Into::into) })
}

/// Lets a thread wait until a queue has something.
pub(super) struct Parker(Arc<(std::sync::Mutex<bool>, std::sync::Condvar)>);

impl Parker {
    pub(super) fn new() -> Parker {
        Parker(Arc::default())
    }

    pub(super) fn wake(&self) -> crate::port::Wake {
        let shared = self.0.clone();
        Arc::new(move || {
            *shared.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = true;
            shared.1.notify_one();
        })
    }

    pub(super) fn wait(&self, limit: Duration) {
        let mut ready =
            || std::mem::take(&mut *self.0.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        if host::waits(limit, &mut ready) {
            return;
        }
        let woken = self.0.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Ok((mut woken, _)) = self.0.1.wait_timeout_while(woken, limit, |woken| !*woken) {
            *woken = false;
        }
    }
}

#[cfg(test)]
mod tests;
