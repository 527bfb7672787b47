//! The bytes that outlive a process: keys and values of changelogs and local stores. Pure functions, pinned for
//! ever by the golden file `tests/golden/changelog.txt` (S2.7).
//!
//! A key is a kind byte and the key proper. A value is the version of what was written, as a LEB128 varint, and
//! the codec's bytes; a null value is a delete. Decoding is strict, so that each value has exactly one encoding:
//! equal states are equal bytes.

#[cfg(test)]
use bytes::Bytes;

use crate::compact::CompactBytes;

/// One record of a changelog, or one change of a store: the same bytes in both.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(unreachable_pub, reason = "a simulation reaches it")]
pub struct ChangelogRecord {
    /// Kind byte and key.
    pub key: CompactBytes,
    /// `None` is a delete.
    pub value: Option<CompactBytes>,
}

impl ChangelogRecord {
    /// True of an entry of this kind.
    pub(crate) fn is_of(&self, kind: Kind) -> bool {
        self.key.first() == Some(&kind.byte())
    }
}

/// What an entry of a changelog is about: the first byte of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The state of one state key.
    State = 0,
    /// A timer.
    Timer = 1,
    /// What a task notes about itself.
    Task = 2,
}

impl Kind {
    /// The first byte of the key.
    pub(crate) fn byte(self) -> u8 {
        self as u8
    }
}

/// Bytes that no release of this crate, or only a later one, has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormatError {
    #[error("the key is empty, it lacks the kind byte")]
    EmptyKey,
    #[error("unknown kind {0} of entry, known are 0 (state), 1 (timer) and 2 (task metadata)")]
    UnknownKind(u8),
    #[error("the value ends within its version")]
    TruncatedVersion,
    #[error("the value's version is not a shortest varint of 32 bits")]
    OverlongVersion,
}

/// The key of an entry.
pub(crate) fn key(kind: Kind, key: &[u8]) -> CompactBytes {
    CompactBytes::concat(&[kind.byte()], key)
}

/// Takes the key of an entry apart.
pub(crate) fn decode_key(bytes: &[u8]) -> Result<(Kind, &[u8]), FormatError> {
    let (kind, key) = bytes.split_first().ok_or(FormatError::EmptyKey)?;
    let kind = match kind {
        0 => Kind::State,
        1 => Kind::Timer,
        2 => Kind::Task,
        other => return Err(FormatError::UnknownKind(*other)),
    };
    Ok((kind, key))
}

/// The value of an entry: its version, then the codec's bytes.
#[cfg(test)]
pub(crate) fn encode_value(version: u32, codec: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(MAX_VERSION_LEN + codec.len());
    put_version(version, &mut bytes);
    bytes.extend_from_slice(codec);
    bytes.into()
}

/// A varint of 32 bits has at most this many bytes of 7 bits each.
const MAX_VERSION_LEN: usize = 5;

/// Appends a version as a LEB128 varint; the codec's bytes are to follow.
pub(crate) fn put_version(version: u32, into: &mut Vec<u8>) {
    let mut rest = version;
    while rest >= 0x80 {
        into.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    into.push(rest as u8);
}

/// Takes the version off a value; what remains is the codec's.
pub(crate) fn take_version(value: &[u8]) -> Result<(u32, &[u8]), FormatError> {
    // Nearly always.
    if let Some((first, rest)) = value.split_first().filter(|(first, _)| **first < 0x80) {
        return Ok((u32::from(*first), rest));
    }
    let mut version = 0u32;
    for (at, byte) in value.iter().enumerate().take(MAX_VERSION_LEN) {
        let bits = u32::from(byte & 0x7f);
        let last = byte & 0x80 == 0;
        // The fifth byte has room for four bits, and a last byte of zero could have been left out.
        if (at == MAX_VERSION_LEN - 1 && (!last || bits > 0x0f)) || (last && bits == 0 && at > 0) {
            return Err(FormatError::OverlongVersion);
        }
        version |= bits << (7 * at);
        if last {
            return Ok((version, &value[at + 1..]));
        }
    }
    Err(FormatError::TruncatedVersion)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key_of(kind: Kind, of: &[u8]) -> Bytes {
        key(kind, of).into()
    }

    const GOLDEN: &str = include_str!("../tests/golden/changelog.txt");

    fn hex(text: &str) -> Vec<u8> {
        assert!(text.len().is_multiple_of(2), "odd number of hex digits: {text}");
        let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    /// The golden file's lines of one section, split into fields.
    fn golden(section: &str) -> Vec<Vec<&'static str>> {
        let lines: Vec<Vec<&str>> = GOLDEN
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
            .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
            .filter(|fields| fields[0] == section)
            .collect();
        assert!(!lines.is_empty(), "no line of section {section}");
        lines
    }

    fn kind(name: &str) -> Kind {
        match name {
            "state" => Kind::State,
            "timer" => Kind::Timer,
            "task" => Kind::Task,
            other => panic!("unknown kind in the golden file: {other}"),
        }
    }

    #[test]
    fn keys_are_as_in_the_golden_file() {
        for fields in golden("key") {
            let [_, name, key, bytes] = fields[..] else { panic!("not a key line: {fields:?}") };
            let (key, bytes) = (hex(key), hex(bytes));
            assert_eq!(key_of(kind(name), &key), bytes);
            assert_eq!(decode_key(&bytes), Ok((kind(name), &key[..])));
        }
    }

    #[test]
    fn values_are_as_in_the_golden_file() {
        for fields in golden("value") {
            let [_, version, codec, bytes] = fields[..] else { panic!("not a value line: {fields:?}") };
            let (version, codec, bytes) = (version.parse().unwrap(), hex(codec), hex(bytes));
            assert_eq!(encode_value(version, &codec), bytes);
            assert_eq!(take_version(&bytes), Ok((version, &codec[..])));
        }
    }

    #[test]
    fn refused_bytes_are_refused_as_in_the_golden_file() {
        for fields in golden("refused key") {
            assert_eq!(format!("{:?}", decode_key(&hex(fields[1])).unwrap_err()), fields[2]);
        }
        for fields in golden("refused value") {
            assert_eq!(format!("{:?}", take_version(&hex(fields[1])).unwrap_err()), fields[2]);
        }
    }

    proptest! {
        #[test]
        fn every_key_comes_back(key: Vec<u8>, kind in prop::sample::select(vec![Kind::State, Kind::Timer, Kind::Task])) {
            let bytes = key_of(kind, &key);
            prop_assert_eq!(decode_key(&bytes), Ok((kind, &key[..])));
        }

        #[test]
        fn every_value_comes_back(version: u32, codec: Vec<u8>) {
            let bytes = encode_value(version, &codec);
            prop_assert_eq!(take_version(&bytes), Ok((version, &codec[..])));
        }

        #[test]
        fn what_decodes_is_the_only_encoding(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0x80), Just(0)], 0..8)) {
            if let Ok((version, codec)) = take_version(&bytes) {
                prop_assert_eq!(encode_value(version, codec), bytes.clone());
            }
            if let Ok((kind, key)) = decode_key(&bytes) {
                prop_assert_eq!(key_of(kind, key), bytes);
            }
        }

        #[test]
        fn a_cut_version_is_truncated(version: u32, keep in 0usize..5) {
            let mut bytes = Vec::new();
            put_version(version, &mut bytes);
            if keep < bytes.len() {
                prop_assert_eq!(take_version(&bytes[..keep]), Err(FormatError::TruncatedVersion));
            }
        }
    }
}
