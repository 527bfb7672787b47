//! The states that are newer than the store: those of the batch being built, and those of the batch that is
//! still committing (S2.5). The store holds only what is known to be committed (S3.4).

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use crate::format::ChangelogRecord;
use crate::glue::StateChange;

/// One state, as far as a batch has touched it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Touched {
    /// Before the batch.
    before: Option<Bytes>,
    now: Option<Bytes>,
    /// Of the last record that changed it, in milliseconds.
    timestamp: i64,
}

/// The changes of one batch, by changelog key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    states: HashMap<Bytes, Touched>,
    bytes: usize,
}

impl Layer {
    /// Bytes of keys and new values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The final writes: one for each key, none where the state is what it was before the batch.
    pub(crate) fn writes(&self) -> Vec<ChangelogRecord> {
        self.states
            .iter()
            .filter(|(_, touched)| touched.before != touched.now)
            .map(|(key, touched)| ChangelogRecord {
                key: key.clone(),
                value: touched.now.clone(),
                timestamp: touched.timestamp,
            })
            .collect()
    }

    fn get(&self, key: &[u8]) -> Option<&Option<Bytes>> {
        self.states.get(key).map(|touched| &touched.now)
    }
}

/// The layers above the store.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    building: Layer,
    committing: Option<Arc<Layer>>,
}

impl Overlay {
    /// The state under this key, where a layer has it: the outer `None` sends the caller to the store.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        self.building.get(key).or_else(|| self.committing.as_ref().and_then(|layer| layer.get(key))).cloned()
    }

    /// Takes over what a round did to one state. `state` is what the round was given.
    pub(crate) fn change(&mut self, key: Bytes, state: Option<Bytes>, change: StateChange, timestamp: i64) {
        let now = match change {
            StateChange::Unchanged => return,
            StateChange::Set(bytes) => Some(bytes),
            StateChange::Deleted => None,
        };
        let size = now.as_ref().map_or(0, Bytes::len);
        match self.building.states.get_mut(&key) {
            Some(touched) => {
                self.building.bytes += size;
                self.building.bytes -= touched.now.as_ref().map_or(0, Bytes::len);
                touched.now = now;
                touched.timestamp = timestamp;
            }
            None => {
                self.building.bytes += key.len() + size;
                self.building.states.insert(key, Touched { before: state, now, timestamp });
            }
        }
    }

    /// Bytes of the changes of the batch being built.
    pub(crate) fn building_bytes(&self) -> usize {
        self.building.bytes()
    }

    /// Closes the batch being built. Its layer stays visible until [`Overlay::applied`].
    ///
    /// The caller closes the next batch only after the one before it is applied, or holds the layer back.
    pub(crate) fn close(&mut self) -> Arc<Layer> {
        // The next batch will hardly be larger, and growing a map step by step moves everything in it each time.
        let states = HashMap::with_capacity(self.building.states.len());
        Arc::new(std::mem::replace(&mut self.building, Layer { states, bytes: 0 }))
    }

    /// A closed batch is being committed from here on.
    pub(crate) fn committing(&mut self, layer: Arc<Layer>) {
        self.committing = Some(layer);
    }

    /// The batch that was committing is in the store.
    pub(crate) fn applied(&mut self) {
        self.committing = None;
    }

    /// Forgets everything.
    pub(crate) fn discard(&mut self) {
        *self = Overlay::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn set(text: &'static str) -> StateChange {
        StateChange::Set(bytes(text))
    }

    #[test]
    fn a_state_that_ends_as_it_began_is_not_written() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("k"), Some(bytes("1")), set("2"), 1);
        overlay.change(bytes("k"), Some(bytes("2")), set("1"), 2);
        assert_eq!(overlay.get(b"k"), Some(Some(bytes("1"))));
        assert_eq!(overlay.close().writes(), []);
    }

    #[test]
    fn a_delete_writes_a_tombstone_and_nothing_where_there_was_no_entry() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("had"), Some(bytes("1")), StateChange::Deleted, 3);
        overlay.change(bytes("new"), None, set("1"), 4);
        overlay.change(bytes("new"), Some(bytes("1")), StateChange::Deleted, 5);
        let writes = overlay.close().writes();
        assert_eq!(writes, [ChangelogRecord { key: bytes("had"), value: None, timestamp: 3 }]);
    }

    #[test]
    fn one_final_write_for_each_key() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("k"), None, set("1"), 1);
        overlay.change(bytes("k"), Some(bytes("1")), set("2"), 2);
        let writes = overlay.close().writes();
        assert_eq!(writes, [ChangelogRecord { key: bytes("k"), value: Some(bytes("2")), timestamp: 2 }]);
    }

    #[test]
    fn unchanged_refers_to_the_batch_that_is_still_committing() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("k"), None, set("1"), 1);
        let first = overlay.close();
        overlay.committing(first);
        // The store has no entry yet; the next batch sees 1 all the same, and writing 1 again is no change.
        assert_eq!(overlay.get(b"k"), Some(Some(bytes("1"))));
        overlay.change(bytes("k"), Some(bytes("1")), StateChange::Deleted, 2);
        assert_eq!(overlay.get(b"k"), Some(None));
        overlay.applied();
        let writes = overlay.close().writes();
        assert_eq!(writes, [ChangelogRecord { key: bytes("k"), value: None, timestamp: 2 }]);
    }

    #[test]
    fn bytes_follow_the_last_value_of_each_key() {
        let mut overlay = Overlay::default();
        overlay.change(bytes("key"), None, set("12345"), 1);
        overlay.change(bytes("key"), Some(bytes("12345")), set("1"), 2);
        assert_eq!(overlay.building_bytes(), 4);
        overlay.discard();
        assert_eq!(overlay.building_bytes(), 0);
        assert_eq!(overlay.get(b"key"), None);
    }
}
