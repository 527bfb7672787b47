//! What a task knows of time (S12.2): stream time, and before when no timer can be due, so that a round asks the store for
//! timers only where there may be some.

use bytes::Bytes;

use super::turns::Turns;
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
    /// When timers of the wall clock may fire.
    pub(super) turns: Turns,
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
                keys.push(Bytes::copy_from_slice(&key[1..]));
            }
        }
        if let Some(store) = store {
            store.due(clock, from, &mut |due, key| {
                if overlay.get(&format::key(Kind::Timer, key)).is_some() {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::compact::CompactBytes;
    use crate::glue::StateChange;
    use crate::port::{StoreFactory, StoreId};
    use crate::store::MemoryStores;
    use crate::task::Layer;
    use crate::timers::{Pending, encode, encode_stream_time, summary};

    fn store() -> Arc<dyn Store> {
        let id = StoreId { application_id: "app".to_owned(), partition: 0 };
        MemoryStores::default().open(&id, false).unwrap()
    }

    fn value(due: i64) -> CompactBytes {
        let mut value = Vec::new();
        encode(&[Pending { name: "x".to_owned(), clock: Clock::EventTime, due }], &mut value);
        value.into()
    }

    fn changelog_key(key: u8) -> CompactBytes {
        format::key(Kind::Timer, &[key])
    }

    #[test]
    fn the_stream_time_is_that_of_the_store() {
        assert_eq!(Timing::begin(None).unwrap().stream_time, None);
        let store = store();
        let change = crate::format::ChangelogRecord {
            key: STREAM_TIME.into(),
            value: Some(encode_stream_time(77)[..].into()),
        };
        store.apply(&[change], "s").unwrap();
        let timing = Timing::begin(Some(&*store)).unwrap();
        assert_eq!(timing.stream_time, Some(77));
        let record = |timestamp| RawRecord {
            input: 0,
            partition: 0,
            offset: 0,
            timestamp,
            key: None,
            value: None,
            headers: Default::default(),
        };
        assert_eq!(timing.of(&[record(5), record(-1)]).stream_time, Some(77), "it never goes back");
        assert_eq!(timing.of(&[record(5), record(80)]).due.event_time, Some(80));
        assert_eq!(Timing::default().of(&[record(-1)]).stream_time, None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// One key's timer, `None` for none; times in the past come too.
        Set(u8, Option<i64>),
        Close,
        Applied,
        Discard,
        /// Fires what is due by then, this many keys at once.
        Fire(i64, usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0u8..12, prop::option::weighted(0.8, 0i64..100)).prop_map(|(key, due)| Step::Set(key, due)),
            2 => Just(Step::Close),
            2 => Just(Step::Applied),
            1 => Just(Step::Discard),
            4 => (0i64..100, 1usize..4).prop_map(|(by, room)| Step::Fire(by, room)),
        ];
        prop::collection::vec(step, 1..80)
    }

    /// Whatever is in the store, in the batch that commits and in the one that is built: each key that is due is found, and none
    /// that is not.
    fn agrees(steps: Vec<Step>, store: &Arc<dyn Store>) -> Result<(), TestCaseError> {
        let mut overlay = Overlay::default();
        let mut timing = Timing::begin(Some(&**store)).unwrap();
        // As the task sees it, and as it is committed.
        let (mut now, mut committed) = (BTreeMap::<u8, i64>::new(), BTreeMap::<u8, i64>::new());
        let mut committing: Option<(Arc<Layer>, BTreeMap<u8, i64>)> = None;
        let set = |overlay: &mut Overlay,
                   timing: &mut Timing,
                   now: &mut BTreeMap<u8, i64>,
                   key: u8,
                   due: Option<i64>| {
            let before = now.get(&key).map(|due| value(*due));
            let change = match due {
                Some(due) => {
                    timing.set(summary(&value(due)).unwrap());
                    now.insert(key, due);
                    StateChange::Set(value(due))
                }
                None => {
                    now.remove(&key);
                    if before.is_some() { StateChange::Deleted } else { StateChange::Unchanged }
                }
            };
            overlay.change(changelog_key(key), before, change);
        };
        for step in steps {
            match step {
                Step::Set(key, due) => set(&mut overlay, &mut timing, &mut now, key, due),
                Step::Close if committing.is_none() => {
                    let layer = Arc::new(overlay.close());
                    overlay.committing(layer.clone());
                    committing = Some((layer, now.clone()));
                }
                Step::Applied => {
                    if let Some((layer, state)) = committing.take() {
                        store.apply_over(layer.changes(), layer.timers(), "s").unwrap();
                        overlay.applied();
                        committed = state;
                    }
                }
                Step::Discard => {
                    overlay.discard();
                    committing = None;
                    now = committed.clone();
                    timing = Timing::begin(Some(&**store)).unwrap();
                }
                Step::Close => {}
                Step::Fire(by, room) => {
                    let due: BTreeMap<u8, i64> =
                        now.iter().filter(|(_, due)| **due <= by).map(|(key, due)| (*key, *due)).collect();
                    let keys = timing.due(Clock::EventTime, by, room, &overlay, Some(&**store)).unwrap();
                    prop_assert_eq!(keys.len(), due.len().min(room), "{:?} of {:?}", keys, due);
                    for key in keys {
                        prop_assert!(due.contains_key(&key[0]), "{} is not due, or was named twice", key[0]);
                        set(&mut overlay, &mut timing, &mut now, key[0], None);
                    }
                }
            }
            let earliest = now.values().min().copied().unwrap_or(i64::MAX);
            prop_assert!(timing.next(Clock::EventTime) <= earliest);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn agrees_with_a_model(steps in steps()) {
            agrees(steps, &store())?;
        }
    }

    #[cfg(feature = "rocksdb")]
    proptest! {
        #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn agrees_with_a_model_on_disk(steps in steps()) {
            let folder = tempfile::tempdir().unwrap();
            let id = StoreId { application_id: "app".to_owned(), partition: 0 };
            let store = crate::store::RocksStores::new(folder.path()).open(&id, false).unwrap();
            agrees(steps, &store)?;
        }
    }
}
