//! Bytes of keys and states. Most are few, and there are many of them: they lie in place, where neither a reference count nor
//! another place in memory has to be touched. Many are shared, as [`Bytes`] are, so that copies of a large state cost nothing.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

/// As many as lie in place: a UUID as text with a byte before it does.
const IN_PLACE: usize = 38;

/// Bytes that are not changed.
#[derive(Clone)]
pub struct CompactBytes(Place);

#[derive(Clone)]
enum Place {
    Here { len: u8, bytes: [u8; IN_PLACE] },
    Elsewhere(Bytes),
}

impl CompactBytes {
    /// The concatenation of two parts.
    pub(crate) fn concat(first: &[u8], second: &[u8]) -> CompactBytes {
        let len = first.len() + second.len();
        if len > IN_PLACE {
            return CompactBytes(Place::Elsewhere([first, second].concat().into()));
        }
        let mut bytes = [0; IN_PLACE];
        bytes[..first.len()].copy_from_slice(first);
        bytes[first.len()..len].copy_from_slice(second);
        CompactBytes(Place::Here { len: len as u8, bytes })
    }
}

impl Default for CompactBytes {
    fn default() -> CompactBytes {
        CompactBytes::from(&[][..])
    }
}

impl Deref for CompactBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Here { len, bytes } => &bytes[..usize::from(*len)],
            Place::Elsewhere(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for CompactBytes {
    fn from(bytes: &[u8]) -> CompactBytes {
        CompactBytes::concat(bytes, &[])
    }
}

impl From<Vec<u8>> for CompactBytes {
    fn from(bytes: Vec<u8>) -> CompactBytes {
        Bytes::from(bytes).into()
    }
}

impl From<Bytes> for CompactBytes {
    fn from(bytes: Bytes) -> CompactBytes {
        match bytes.len() > IN_PLACE {
            true => CompactBytes(Place::Elsewhere(bytes)),
            false => CompactBytes::from(&bytes[..]),
        }
    }
}

impl From<CompactBytes> for Bytes {
    fn from(bytes: CompactBytes) -> Bytes {
        match bytes.0 {
            Place::Here { .. } => Bytes::copy_from_slice(&bytes),
            Place::Elsewhere(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for CompactBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for CompactBytes {
    fn eq(&self, other: &CompactBytes) -> bool {
        **self == **other
    }
}

impl Eq for CompactBytes {}

impl PartialEq<[u8]> for CompactBytes {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialOrd for CompactBytes {
    fn partial_cmp(&self, other: &CompactBytes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CompactBytes {
    fn cmp(&self, other: &CompactBytes) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

/// Shows how many they are: they are payload.
impl fmt::Debug for CompactBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_not_larger_than_it_has_to_be() {
        assert_eq!(size_of::<CompactBytes>(), 40);
        assert_eq!(size_of::<Option<CompactBytes>>(), 40);
    }

    #[test]
    fn few_and_many_are_the_same_bytes() {
        for len in [0, 1, IN_PLACE - 1, IN_PLACE, IN_PLACE + 1, 1000] {
            let plain: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let all = [
                CompactBytes::from(&plain[..]),
                CompactBytes::from(plain.clone()),
                CompactBytes::from(Bytes::from(plain.clone())),
                CompactBytes::concat(&plain[..len / 3], &plain[len / 3..]),
            ];
            for bytes in all {
                assert_eq!(&bytes[..], plain);
                assert_eq!(bytes.clone(), bytes);
                assert_eq!(Bytes::from(bytes), plain);
            }
        }
    }
}
