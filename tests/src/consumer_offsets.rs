//! The records of `__consumer_offsets`: which position a group has committed. Read here anew, by the format of Kafka's own
//! coordinator.

use flechtwerk_checkers::Partition;

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
