//! Walking through the bytes of a message, field by field, and putting other bytes in place of some.
//!
//! Nothing is decoded into structures and written again: what isn't replaced stays as it was, bit by bit, and no memory is
//! reserved by a count that the bytes only claim.

use std::ops::Range;

/// The bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed: {0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

/// A place within a message.
#[derive(Debug, Clone)]
pub(crate) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether lengths are compact and structures end with tagged fields.
    pub(crate) flexible: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Walk<'a> {
        Walk { bytes, at, flexible: false }
    }

    /// All of the message, with what lies behind.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many bytes lie behind.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed("a length out of range"))?;
        let taken = self.bytes.get(self.at..end).ok_or(Malformed("cut off"))?;
        self.at = end;
        Ok(taken)
    }

    fn array_of<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.first_chunk::<N>().copied().ok_or(Malformed("cut off"))
    }

    pub(crate) fn int8(&mut self) -> Result<i8, Malformed> {
        Ok(i8::from_be_bytes(self.array_of()?))
    }

    pub(crate) fn int16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes(self.array_of()?))
    }

    pub(crate) fn int32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array_of()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array_of()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| Malformed("a number out of range"));
            }
        }
        Err(Malformed("a number without end"))
    }

    /// A length or count: `None` for null.
    fn length(&mut self, short: bool) -> Result<Option<usize>, Malformed> {
        let length = match (self.flexible, short) {
            (true, _) => i64::from(self.varint()?) - 1,
            (false, true) => i64::from(self.int16()?),
            (false, false) => i64::from(self.int32()?),
        };
        match length {
            -1 => Ok(None),
            length => usize::try_from(length).map(Some).map_err(|_| Malformed("a negative length")),
        }
    }

    /// A string, `None` for null.
    pub(crate) fn string(&mut self) -> Result<Option<&'a str>, Malformed> {
        let Some(length) = self.length(true)? else { return Ok(None) };
        std::str::from_utf8(self.take(length)?).map(Some).map_err(|_| Malformed("a string that is no UTF-8"))
    }

    /// A string as it stands in every header, whatever the version.
    pub(crate) fn header_string(&mut self) -> Result<Option<&'a str>, Malformed> {
        let flexible = std::mem::replace(&mut self.flexible, false);
        let text = self.string();
        self.flexible = flexible;
        text
    }

    pub(crate) fn skip_bytes(&mut self) -> Result<(), Malformed> {
        let length = self.length(false)?.unwrap_or(0);
        self.take(length).map(drop)
    }

    /// How many elements follow; 0 for null.
    pub(crate) fn array(&mut self) -> Result<usize, Malformed> {
        Ok(self.length(false)?.unwrap_or(0))
    }

    /// The tagged fields at the end of a structure, if this version has them.
    pub(crate) fn tags(&mut self) -> Result<(), Malformed> {
        self.find_tag(u32::MAX).map(drop)
    }

    /// The same, and where one of them lies: its content with the size in front, and a walk at its content.
    pub(crate) fn find_tag(&mut self, wanted: u32) -> Result<Option<(Range<usize>, Walk<'a>)>, Malformed> {
        let mut found = None;
        if !self.flexible {
            return Ok(found);
        }
        for _ in 0..self.varint()? {
            let (tag, start) = (self.varint()?, self.at);
            let size = self.varint()? as usize;
            let mut content = self.clone();
            self.take(size)?;
            if tag == wanted {
                content.bytes = self.bytes.get(..self.at).unwrap_or_default();
                found = Some((start..self.at, content));
            }
        }
        Ok(found)
    }
}

/// What is to be put in place of what, from front to back.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, Vec<u8>)>);

impl Edits {
    pub(crate) fn replace(&mut self, range: Range<usize>, by: Vec<u8>) {
        self.0.push((range, by));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// That part of the bytes with all of it done.
    pub(crate) fn apply(&self, bytes: &[u8], within: Range<usize>) -> Vec<u8> {
        let mut out = Vec::with_capacity(within.len() + 16 * self.0.len());
        let mut at = within.start;
        for (range, by) in &self.0 {
            out.extend_from_slice(bytes.get(at..range.start).unwrap_or_default());
            out.extend_from_slice(by);
            at = range.end;
        }
        out.extend_from_slice(bytes.get(at..within.end).unwrap_or_default());
        out
    }
}

/// A number in as many bytes as it needs.
pub(crate) fn put_varint(into: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}
