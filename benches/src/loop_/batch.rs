//! The computation: counts per key, and what one transaction will say about them.

use anyhow::{Context as _, ensure};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// First byte of a changelog key: an entry of the state.
const KIND_STATE: u8 = 0;
/// First byte of a changelog value: the version of what follows.
const STATE_VERSION: u8 = 1;

/// The state of one key.
#[derive(Default, Serialize, Deserialize)]
struct Count {
    n: u64,
}

struct Entry {
    count: Count,
    /// The last batch that changed it, and where in that batch's changes.
    batch: u64,
    change: u32,
}

/// The state of a partition.
#[derive(Default)]
pub(super) struct State {
    entries: HashMap<Box<[u8]>, Entry>,
}

impl State {
    /// Takes over one changelog record.
    pub(super) fn restore(&mut self, key: &[u8], value: Option<&[u8]>) -> anyhow::Result<()> {
        let Some((&KIND_STATE, key)) = key.split_first() else {
            anyhow::bail!("a changelog key of an unknown kind");
        };
        let Some(value) = value else {
            self.entries.remove(key);
            return Ok(());
        };
        let Some((&STATE_VERSION, json)) = value.split_first() else {
            anyhow::bail!("a changelog value of an unknown version");
        };
        let count = serde_json::from_slice(json).context("a changelog value that is no state")?;
        self.entries.insert(key.into(), Entry { count, batch: 0, change: 0 });
        Ok(())
    }
}

/// One output: in [`Batch::bytes`] the key lies at `key`, the value right behind it.
pub(super) struct Output {
    key: u32,
    key_len: u32,
    value_len: u32,
    pub(super) timestamp: i64,
}

/// One changed key: the changelog key lies at `key`; the value is written when the batch closes.
struct Change {
    key: u32,
    key_len: u32,
    value: u32,
    value_len: u32,
    n: u64,
}

/// What one transaction holds, in buffers that are used again.
#[derive(Default)]
pub(super) struct Batch {
    number: u64,
    bytes: Vec<u8>,
    outputs: Vec<Output>,
    changes: Vec<Change>,
    /// Where the next batch starts to read.
    pub(super) next_offset: i64,
}

impl Batch {
    /// Makes it empty. Numbers start at 1 and never repeat.
    pub(super) fn open(&mut self, number: u64) {
        self.number = number;
        self.bytes.clear();
        self.outputs.clear();
        self.changes.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.outputs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Counts one input record.
    pub(super) fn count(
        &mut self,
        state: &mut State,
        key: &[u8],
        timestamp: i64,
        offset: i64,
    ) -> anyhow::Result<()> {
        ensure!(
            std::str::from_utf8(key).is_ok(),
            "the key of the input record at offset {offset} is not UTF-8"
        );
        let entry = match state.entries.get_mut(key) {
            Some(entry) => entry,
            None => state.entries.entry(key.into()).or_insert(Entry {
                count: Count::default(),
                batch: 0,
                change: 0,
            }),
        };
        entry.count.n += 1;
        let n = entry.count.n;

        let start = self.bytes.len() as u32;
        let key_len = key.len() as u32;
        self.bytes.push(KIND_STATE);
        self.bytes.extend_from_slice(key);
        let value = self.bytes.len() as u32;
        serde_json::to_writer(&mut self.bytes, &n)?;
        let value_len = self.bytes.len() as u32 - value;
        self.outputs.push(Output { key: start + 1, key_len, value_len, timestamp });

        if entry.batch == self.number {
            self.changes[entry.change as usize].n = n;
        } else {
            entry.batch = self.number;
            entry.change = self.changes.len() as u32;
            self.changes.push(Change { key: start, key_len: key_len + 1, value: 0, value_len: 0, n });
        }
        self.next_offset = offset + 1;
        Ok(())
    }

    /// Writes the changelog values: one per changed key, the last.
    pub(super) fn close(&mut self) -> anyhow::Result<()> {
        for change in &mut self.changes {
            change.value = self.bytes.len() as u32;
            self.bytes.push(STATE_VERSION);
            serde_json::to_writer(&mut self.bytes, &Count { n: change.n })?;
            change.value_len = self.bytes.len() as u32 - change.value;
        }
        Ok(())
    }

    /// Key, value and timestamp of each output.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (&[u8], &[u8], i64)> {
        self.outputs.iter().map(|output| {
            let (key, rest) = self.bytes[output.key as usize..].split_at(output.key_len as usize);
            (key, &rest[..output.value_len as usize], output.timestamp)
        })
    }

    /// Key and value of each changelog record.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.changes.iter().map(|change| {
            let at = |start: u32, len: u32| &self.bytes[start as usize..(start + len) as usize];
            (at(change.key, change.key_len), at(change.value, change.value_len))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_one_output_per_record_and_one_change_per_key() {
        let (mut state, mut batch) = (State::default(), Batch::default());
        batch.open(1);
        for (offset, key) in ["a", "b", "a"].iter().enumerate() {
            batch.count(&mut state, key.as_bytes(), 7, offset as i64).unwrap();
        }
        batch.close().unwrap();
        let outputs: Vec<_> = batch.outputs().collect();
        assert_eq!(outputs, [(&b"a"[..], &b"1"[..], 7), (b"b", b"1", 7), (b"a", b"2", 7)]);
        let changes: Vec<_> = batch.changes().collect();
        assert_eq!(changes, [(&b"\0a"[..], &b"\x01{\"n\":2}"[..]), (b"\0b", b"\x01{\"n\":1}")]);
        assert_eq!(batch.next_offset, 3);
    }

    #[test]
    fn a_restored_state_counts_on() {
        let (mut state, mut batch) = (State::default(), Batch::default());
        state.restore(b"\0a", Some(b"\x01{\"n\":41}")).unwrap();
        state.restore(b"\0b", Some(b"\x01{\"n\":5}")).unwrap();
        state.restore(b"\0b", None).unwrap();
        batch.open(1);
        batch.count(&mut state, b"a", 0, 0).unwrap();
        batch.count(&mut state, b"b", 0, 1).unwrap();
        assert_eq!(batch.outputs().map(|(_, value, _)| value).collect::<Vec<_>>(), [b"42".as_slice(), b"1"]);
    }

    #[test]
    fn a_changelog_of_another_format_is_refused() {
        let mut state = State::default();
        assert!(state.restore(b"\x07a", Some(b"\x01{\"n\":1}")).is_err());
        assert!(state.restore(b"\0a", Some(b"\x09{\"n\":1}")).is_err());
        assert!(state.restore(b"\0a", Some(b"\x01nonsense")).is_err());
    }
}
