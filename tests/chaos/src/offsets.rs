//! The records of `__consumer_offsets`: which position a group has committed, in which transaction. Read here anew, by the format
//! of Kafka's own coordinator.

use std::collections::BTreeMap;

use flechtwerk_checkers::batches::{Batch, Content};
use flechtwerk_checkers::tiling::OffsetRecord;
use flechtwerk_checkers::{Partition, Producer};

/// The topic.
pub const TOPIC: &str = "__consumer_offsets";

/// A committed position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Whose.
    pub group: String,
    /// Of which partition.
    pub partition: Partition,
    /// The position.
    pub offset: i64,
    /// The metadata beside it.
    pub metadata: String,
}

/// Reads a record; `None` where it is about something else: members of a group, a position that is forgotten.
pub fn commit(key: Option<&[u8]>, value: Option<&[u8]>) -> Option<Commit> {
    let (mut key, mut value) = (Bytes(key?), Bytes(value?));
    // Type 2 and above are about groups.
    if !matches!(key.i16()?, 0 | 1) {
        return None;
    }
    let (group, topic, number) = (key.text()?, key.text()?, key.i32()?);
    let version = value.i16()?;
    let offset = value.i64()?;
    if version >= 3 {
        let _leader_epoch = value.i32()?;
    }
    let metadata = if version >= 4 { value.compact_text()? } else { value.text()? };
    Some(Commit { group, partition: Partition::new(topic, number), offset, metadata })
}

/// What was committed by each group in transactions, in the order of their markers. A request that a client has sent again stands there
/// twice within one transaction, and counts once.
pub fn committed(batches: &[Batch<Option<Commit>>]) -> Vec<(String, OffsetRecord)> {
    let mut open: BTreeMap<i64, Vec<(Producer, Commit)>> = BTreeMap::new();
    let mut found = Vec::new();
    for batch in batches {
        let Some(producer) = batch.producer else { continue };
        match &batch.content {
            Content::Records(records) => {
                let of_producer = open.entry(producer.id).or_default();
                for commit in records.iter().filter_map(|(_, commit)| commit.clone()) {
                    let same = |(_, one): &(Producer, Commit)| {
                        one.group == commit.group && one.partition == commit.partition
                    };
                    match of_producer.iter_mut().find(|one| same(one)) {
                        Some(before) => *before = (producer, commit),
                        None => of_producer.push((producer, commit)),
                    }
                }
            }
            Content::Marker { commit } => {
                for (producer, one) in open.remove(&producer.id).filter(|_| *commit).unwrap_or_default() {
                    let record = OffsetRecord {
                        partition: one.partition,
                        offset: one.offset,
                        metadata: one.metadata,
                        producer: Some(producer),
                    };
                    found.push((one.group, record));
                }
            }
        }
    }
    found
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn i64(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.i16()?).ok()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    /// With its length and one, as a varint.
    fn compact_text(&mut self) -> Option<String> {
        let (mut length, mut shift) = (0usize, 0);
        loop {
            let byte = *self.take(1)?.first()?;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
            if shift > 28 {
                return None;
            }
        }
        String::from_utf8(self.take(length.checked_sub(1)?)?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: i16) -> Vec<u8> {
        let mut key = kind.to_be_bytes().to_vec();
        for text in ["group", "words"] {
            key.extend((text.len() as i16).to_be_bytes());
            key.extend(text.bytes());
        }
        key.extend(7i32.to_be_bytes());
        key
    }

    fn value(version: i16) -> Vec<u8> {
        let mut value = version.to_be_bytes().to_vec();
        value.extend(42i64.to_be_bytes());
        if version >= 3 {
            value.extend((-1i32).to_be_bytes());
        }
        let metadata = "a:1:-";
        if version >= 4 {
            value.push(metadata.len() as u8 + 1);
        } else {
            value.extend((metadata.len() as i16).to_be_bytes());
        }
        value.extend(metadata.bytes());
        value.extend(0i64.to_be_bytes());
        value
    }

    #[test]
    fn positions_are_read_in_all_versions() {
        let expected = Commit {
            group: "group".into(),
            partition: Partition::new("words", 7),
            offset: 42,
            metadata: "a:1:-".into(),
        };
        for version in [0, 1, 2, 3, 4] {
            assert_eq!(commit(Some(&key(1)), Some(&value(version))), Some(expected.clone()), "{version}");
        }
    }

    #[test]
    fn a_position_that_was_sent_twice_in_a_transaction_counts_once() {
        let producer = Some(Producer { id: 1, epoch: 0 });
        let records = |offset| {
            let commit = commit(Some(&key(1)), Some(&value(3))).map(|one| Commit { offset, ..one });
            Batch { base_offset: 0, producer, content: Content::Records(vec![(0, commit)]) }
        };
        let marker = |commit| Batch { base_offset: 0, producer, content: Content::Marker { commit } };
        let offsets = |batches: &[Batch<Option<Commit>>]| -> Vec<i64> {
            committed(batches).into_iter().map(|(_, record)| record.offset).collect()
        };
        assert_eq!(offsets(&[records(1), records(1), marker(true), records(2), marker(true)]), [1, 2]);
        assert_eq!(offsets(&[records(1), marker(true), records(1), marker(true)]), [1, 1]);
        assert_eq!(offsets(&[records(1), marker(false), records(2), marker(true), records(3)]), [2]);
    }

    #[test]
    fn what_is_no_position_is_none() {
        assert_eq!(commit(Some(&key(2)), Some(&value(3))), None);
        assert_eq!(commit(Some(&key(1)), None), None);
        assert_eq!(commit(None, Some(&value(3))), None);
        for cut in 0..30 {
            let value = value(3);
            assert_eq!(commit(Some(&key(1)), value.get(..cut.min(18))), None);
        }
    }
}
