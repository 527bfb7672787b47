//! The states that are newer than the store: those of the batch being built, and those of the batch that is
//! still committing (S2.5). The store holds only what is known to be committed (S3.4).

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::compact::CompactBytes;
use crate::format::{ChangelogRecord, Kind};
use crate::glue::StateChange;
use crate::timers::{Clock, DueIndex, Summary};

/// The changes of one batch, by changelog key. They lie in one list, as they go to the changelog and the store;
/// the index only names their places.
#[derive(Debug, Default)]
pub struct Layer {
    changes: Vec<ChangelogRecord>,
    /// The state before the batch, for each change; empty once the batch is closed.
    before: Vec<Option<CompactBytes>>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// By changelog key.
    due: DueIndex<CompactBytes>,
    /// Once the batch is closed: the timers before it, for each change of timers.
    timers: Vec<Summary>,
    bytes: usize,
}

impl Layer {
    fn with_capacity(changes: usize) -> Layer {
        Layer {
            changes: Vec::with_capacity(changes),
            before: Vec::with_capacity(changes),
            index: HashTable::with_capacity(changes),
            ..Layer::default()
        }
    }

    /// Bytes of keys and new values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The final writes of a closed batch: one for each key, none where the state is what it was before.
    pub fn changes(&self) -> &[ChangelogRecord] {
        &self.changes
    }

    /// What was under each key of timers among the changes, in their order, before a closed batch.
    pub fn timers(&self) -> &[Summary] {
        &self.timers
    }

    fn place(&self, key: &[u8]) -> Option<usize> {
        // The first round of a batch looks into an empty layer, and that may be all of the batch.
        if self.changes.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        self.index.find(hash, |place| self.changes[*place as usize].key == *key).map(|place| *place as usize)
    }

    fn get(&self, key: &[u8]) -> Option<&Option<CompactBytes>> {
        self.place(key).map(|place| &self.changes[place].value)
    }

    /// Adds what nobody looks up, after the layer was closed.
    pub fn note(&mut self, note: ChangelogRecord) {
        self.changes.push(note);
    }

    fn set(&mut self, key: CompactBytes, before: Option<CompactBytes>, now: Option<CompactBytes>) {
        if key.first() == Some(&Kind::Timer.byte()) {
            let before = Summary::of(self.get(&key).and_then(Option::as_deref));
            self.due.change(before, Summary::of(now.as_deref()), || key.clone());
        }
        let Layer { changes, before: befores, index, hasher, bytes, .. } = self;
        let size = now.as_ref().map_or(0, |now| now.len());
        let entry = index.entry(
            hasher.hash_one(&key[..]),
            |place| changes[*place as usize].key == key,
            |place| hasher.hash_one(&changes[*place as usize].key[..]),
        );
        match entry {
            Entry::Occupied(place) => {
                let value = &mut changes[*place.get() as usize].value;
                *bytes += size;
                *bytes -= value.as_ref().map_or(0, |value| value.len());
                *value = now;
            }
            Entry::Vacant(place) => {
                place.insert(changes.len() as u32);
                *bytes += key.len() + size;
                changes.push(ChangelogRecord { key, value: now });
                befores.push(before);
            }
        }
    }

    /// Drops the changes that are none, and what is needed to know them.
    fn close(&mut self) {
        let before = std::mem::take(&mut self.before);
        let mut before = before.into_iter();
        let count = self.changes.len();
        let Layer { due, timers, .. } = self;
        self.changes.retain(|change| {
            let before = before.next().flatten();
            let keep = before != change.value;
            if change.is_of(Kind::Timer) {
                let before = Summary::of(before.as_deref());
                match keep {
                    true => timers.push(before),
                    false => due.change(before, Summary::default(), || change.key.clone()),
                }
            }
            keep
        });
        if self.changes.len() < count {
            let Layer { changes, index, hasher, .. } = self;
            let hash = |place: &u32| hasher.hash_one(&changes[*place as usize].key[..]);
            index.clear();
            for place in 0..changes.len() as u32 {
                index.insert_unique(hash(&place), place, hash);
            }
        }
    }
}

/// The layers above the store.
#[derive(Debug, Default)]
pub struct Overlay {
    building: Layer,
    committing: Option<Arc<Layer>>,
}

impl Overlay {
    /// The state under this key, where a layer has it: the outer `None` sends the caller to the store.
    pub fn get(&self, key: &[u8]) -> Option<Option<CompactBytes>> {
        self.building.get(key).or_else(|| self.committing.as_ref().and_then(|layer| layer.get(key))).cloned()
    }

    /// Changelog keys of timers whose entry in the store is not the last, with the earliest due time of this clock, in the
    /// order of due times but for the change from the batch being built to the one that commits.
    pub fn due(&self, clock: Clock) -> impl Iterator<Item = (i64, &CompactBytes)> {
        let committing = self.committing.iter().flat_map(move |layer| layer.due.of(clock, i64::MIN));
        let older = committing.filter(|(_, key)| self.building.place(key).is_none());
        self.building.due.of(clock, i64::MIN).chain(older)
    }

    /// Takes over what a round did to one state. `state` is what the round was given.
    pub fn change(&mut self, key: CompactBytes, state: Option<CompactBytes>, change: StateChange) {
        match change {
            StateChange::Unchanged => {}
            StateChange::Set(bytes) => self.building.set(key, state, Some(bytes)),
            StateChange::Deleted => self.building.set(key, state, None),
        }
    }

    /// Bytes of the changes of the batch being built.
    pub fn building_bytes(&self) -> usize {
        self.building.bytes()
    }

    /// Closes the batch being built, and forgets it until [`Overlay::committing`]: nothing is computed before.
    pub fn close(&mut self) -> Layer {
        // The next batch will hardly be larger, and growing step by step moves everything each time.
        let next = Layer::with_capacity(self.building.changes.len());
        let mut layer = std::mem::replace(&mut self.building, next);
        layer.close();
        layer
    }

    /// A closed batch is being committed from here on.
    pub fn committing(&mut self, layer: Arc<Layer>) {
        self.committing = Some(layer);
    }

    /// The batch that was committing is in the store.
    pub fn applied(&mut self) {
        self.committing = None;
    }

    /// Forgets everything.
    pub fn discard(&mut self) {
        if flawed!(StateKeptAfterAbort) {
            return;
        }
        *self = Overlay::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timers;

    fn bytes(text: &str) -> CompactBytes {
        CompactBytes::from(text.as_bytes())
    }

    fn set(text: &'static str) -> StateChange {
        StateChange::Set(bytes(text))
    }

    fn written(layer: &Layer) -> Vec<(&[u8], Option<&[u8]>)> {
        layer.changes().iter().map(|change| (&change.key[..], change.value.as_deref())).collect()
    }

    #[test]
    fn a_state_that_ends_as_it_began_is_not_written() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("k"), Some(bytes("1")), set("2"));
        overlay.change(bytes("other"), None, set("5"));
        overlay.change(bytes("k"), Some(bytes("2")), set("1"));
        assert_eq!(overlay.get(b"k"), Some(Some(bytes("1"))));
        let layer = overlay.close();
        assert_eq!(written(&layer), [(&b"other"[..], Some(&b"5"[..]))]);
        overlay.committing(Arc::new(layer));
        assert_eq!(overlay.get(b"other"), Some(Some(bytes("5"))), "the places moved");
        assert_eq!(overlay.get(b"k"), None, "the store has it");
    }

    #[test]
    fn a_delete_writes_a_tombstone_and_nothing_where_there_was_no_entry() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("had"), Some(bytes("1")), StateChange::Deleted);
        overlay.change(bytes("new"), None, set("1"));
        overlay.change(bytes("new"), Some(bytes("1")), StateChange::Deleted);
        assert_eq!(written(&overlay.close()), [(&b"had"[..], None)]);
    }

    #[test]
    fn one_final_write_for_each_key() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("k"), None, set("1"));
        overlay.change(bytes("k"), Some(bytes("1")), set("2"));
        assert_eq!(written(&overlay.close()), [(&b"k"[..], Some(&b"2"[..]))]);
    }

    #[test]
    fn unchanged_refers_to_the_batch_that_is_still_committing() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("k"), None, set("1"));
        let first = overlay.close();
        overlay.committing(Arc::new(first));
        // The store has no entry yet; the next batch sees 1 all the same, and deleting it is a change.
        assert_eq!(overlay.get(b"k"), Some(Some(bytes("1"))));
        overlay.change(bytes("k"), Some(bytes("1")), StateChange::Deleted);
        assert_eq!(overlay.get(b"k"), Some(None));
        overlay.applied();
        assert_eq!(written(&overlay.close()), [(&b"k"[..], None)]);
    }

    #[test]
    fn bytes_follow_the_last_value_of_each_key() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("key"), None, set("12345"));
        overlay.change(bytes("key"), Some(bytes("12345")), set("1"));
        assert_eq!(overlay.building_bytes(), 4);
        overlay.discard();
        assert_eq!(overlay.building_bytes(), 0);
        assert_eq!(overlay.get(b"key"), None);
    }

    fn timer_key(key: &str) -> CompactBytes {
        bytes(&["\x01", key].concat())
    }

    fn timer(due: i64, clock: Clock) -> CompactBytes {
        let mut value = Vec::new();
        timers::encode(&[timers::Pending { name: "t".into(), clock, due }], &mut value);
        value.into()
    }

    fn due(overlay: &Overlay, clock: Clock) -> Vec<(i64, &[u8])> {
        overlay.due(clock).map(|(due, key)| (due, &key[1..])).collect()
    }

    #[test]
    fn timers_are_found_until_they_are_in_the_store() {
        let set = |due| StateChange::Set(timer(due, Clock::EventTime));
        let mut overlay = Overlay::default();
        overlay.change(timer_key("a"), None, set(9));
        overlay.change(timer_key("b"), None, StateChange::Set(timer(3, Clock::WallClock)));
        overlay.change(timer_key("a"), Some(timer(9, Clock::EventTime)), set(5));
        overlay.change(bytes("no timer"), None, set(1));
        assert_eq!(due(&overlay, Clock::EventTime), [(5, &b"a"[..])], "moved, and once");
        assert_eq!(due(&overlay, Clock::WallClock), [(3, &b"b"[..])]);

        let layer = overlay.close();
        overlay.committing(Arc::new(layer));
        assert_eq!(due(&overlay, Clock::EventTime), [(5, &b"a"[..])], "it is not in the store yet");
        overlay.change(timer_key("c"), None, set(7));
        assert_eq!(due(&overlay, Clock::EventTime), [(7, &b"c"[..]), (5, b"a")]);
        // What the batch being built says of a key is newer.
        overlay.change(timer_key("a"), Some(timer(5, Clock::EventTime)), StateChange::Deleted);
        assert_eq!(due(&overlay, Clock::EventTime), [(7, &b"c"[..])]);
        overlay.applied();
        assert_eq!(due(&overlay, Clock::EventTime), [(7, &b"c"[..])]);
        assert_eq!(due(&overlay, Clock::WallClock), []);
    }

    #[test]
    fn timers_that_end_as_they_began_are_left_to_the_store() {
        let stored = timer(5, Clock::EventTime);
        let mut overlay = Overlay::default();
        for (from, to) in [(5, 9), (9, 5)] {
            let [from, to] = [from, to].map(|due| timer(due, Clock::EventTime));
            overlay.change(timer_key("same"), Some(from), StateChange::Set(to));
        }
        overlay.change(timer_key("other"), None, StateChange::Set(stored.clone()));
        let layer = overlay.close();
        assert_eq!(written(&layer), [(&b"\x01other"[..], Some(&stored[..]))]);
        assert_eq!(layer.timers(), [timers::Summary::default()], "of those that are written");
        overlay.committing(Arc::new(layer));
        assert_eq!(due(&overlay, Clock::EventTime), [(5, &b"other"[..])]);
    }

    #[test]
    fn a_closed_layer_says_what_timers_were_before() {
        let mut overlay = Overlay::default();
        let (two, five) = (timer(2, Clock::EventTime), timer(5, Clock::WallClock));
        overlay.change(timer_key("b"), Some(two.clone()), StateChange::Set(five.clone()));
        overlay.change(bytes("state"), Some(bytes("1")), set("2"));
        overlay.change(timer_key("a"), Some(five.clone()), StateChange::Deleted);
        // What was there before the batch, not before the last round of it.
        overlay.change(timer_key("b"), Some(five.clone()), StateChange::Deleted);
        let layer = overlay.close();
        assert_eq!(layer.changes().len(), 3);
        assert_eq!(layer.timers(), [&two, &five].map(|value| timers::Summary::of(Some(value))));
    }

    #[test]
    fn a_closed_layer_takes_notes_and_knows_its_size() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("key"), None, set("12345"));
        let mut layer = overlay.close();
        assert_eq!((layer.bytes(), overlay.building_bytes()), (8, 0));
        layer.note(ChangelogRecord { key: bytes("\x02note"), value: None });
        assert_eq!(written(&layer), [(&b"key"[..], Some(&b"12345"[..])), (b"\x02note", None)]);
    }
}
