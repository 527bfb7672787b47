//! The records inside a batch: reading them without trust in any length, and writing them anew.

use super::batch::{BatchError, BatchHeader};
use super::compression;

/// One record of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The distance of its timestamp from the batch's base timestamp.
    pub timestamp_delta: i64,
    /// The distance of its offset from the batch's base offset.
    pub offset_delta: i32,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    attributes: u8,
    /// From the offset delta to the end, as it is encoded.
    tail: &'a [u8],
}

/// Shows no payload.
impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("offset_delta", &self.offset_delta).finish_non_exhaustive()
    }
}

impl Record<'_> {
    /// Writes it again, with another distance from the base timestamp.
    pub(crate) fn write(&self, timestamp_delta: i64, out: &mut Vec<u8>) {
        let mut delta = Vec::with_capacity(10);
        write_varlong(timestamp_delta, &mut delta);
        // The tail came out of a batch, whose length is an i32.
        let length = i64::try_from(1 + delta.len() + self.tail.len()).unwrap_or(i64::from(i32::MAX));
        write_varlong(length, out);
        out.push(self.attributes);
        out.extend_from_slice(&delta);
        out.extend_from_slice(self.tail);
    }
}

/// The records of a batch, opened if they were compressed.
#[derive(Debug)]
pub struct Records<'a> {
    body: std::borrow::Cow<'a, [u8]>,
    count: i32,
}

impl<'a> Records<'a> {
    /// Opens the records of the batch that `header` was read from.
    pub fn open(header: &BatchHeader, batch: &'a [u8]) -> Result<Self, BatchError> {
        header.check_counts()?;
        let body = compression::decompress(header.compression()?, header.body(batch)?)?;
        Ok(Self { body, count: header.count })
    }

    /// Walks over the records. After an error nothing more comes.
    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter { rest: &self.body, left: self.count, failed: false }
    }
}

/// Walks over the records of a batch, and checks that exactly as many are there as its header says.
#[derive(Debug)]
pub struct RecordIter<'a> {
    rest: &'a [u8],
    left: i32,
    failed: bool,
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if self.left <= 0 {
            if self.rest.is_empty() {
                return None;
            }
            self.failed = true;
            return Some(Err(BatchError::Corrupt("it has more bytes than its records")));
        }
        self.left -= 1;
        let record = read_record(&mut self.rest);
        self.failed = record.is_err();
        Some(record)
    }
}

fn read_record<'a>(rest: &mut &'a [u8]) -> Result<Record<'a>, BatchError> {
    let length = read_varint(rest)?;
    let mut record = take(rest, length)?;
    let attributes = take(&mut record, 1)?.first().copied().unwrap_or(0);
    let timestamp_delta = read_varlong(&mut record)?;
    let tail = record;
    let offset_delta = read_varint(&mut record)?;
    let key = read_bytes(&mut record)?;
    let value = read_bytes(&mut record)?;
    let headers = read_varint(&mut record)?;
    if headers < 0 {
        return Err(BatchError::Corrupt("a record has a negative number of headers"));
    }
    // A header has at least two bytes, so that a lying number ends with the record's bytes.
    for _ in 0..headers {
        if read_bytes(&mut record)?.is_none() {
            return Err(BatchError::Corrupt("a header has no name"));
        }
        read_bytes(&mut record)?;
    }
    if !record.is_empty() {
        return Err(BatchError::Corrupt("a record has more bytes than its fields"));
    }
    Ok(Record { timestamp_delta, offset_delta, key, value, attributes, tail })
}

fn read_bytes<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, BatchError> {
    match read_varint(rest)? {
        -1 => Ok(None),
        length => take(rest, length).map(Some),
    }
}

fn take<'a>(rest: &mut &'a [u8], length: i32) -> Result<&'a [u8], BatchError> {
    let length = usize::try_from(length).map_err(|_| BatchError::Corrupt("a length is negative"))?;
    let (taken, left) =
        rest.split_at_checked(length).ok_or(BatchError::Corrupt("a length reaches beyond the end"))?;
    *rest = left;
    Ok(taken)
}

fn read_varint(rest: &mut &[u8]) -> Result<i32, BatchError> {
    let value = read_varlong(rest)?;
    i32::try_from(value).map_err(|_| BatchError::Corrupt("a number is too large"))
}

fn read_varlong(rest: &mut &[u8]) -> Result<i64, BatchError> {
    let mut value = 0_u64;
    for (index, byte) in rest.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (index * 7);
        if byte & 0x80 == 0 {
            *rest = rest.get(index + 1..).unwrap_or_default();
            return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    Err(BatchError::Corrupt("a number has no end"))
}

pub(crate) fn write_varlong(value: i64, out: &mut Vec<u8>) {
    let mut zigzag = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while zigzag >= 0x80 {
        out.push((zigzag & 0x7f) as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

/// Writes a record without headers.
pub(crate) fn write_record(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    out: &mut Vec<u8>,
) {
    let mut tail = Vec::new();
    write_varlong(i64::from(offset_delta), &mut tail);
    for bytes in [key, value] {
        match bytes {
            None => write_varlong(-1, &mut tail),
            Some(bytes) => {
                write_varlong(i64::try_from(bytes.len()).unwrap_or(i64::MAX), &mut tail);
                tail.extend_from_slice(bytes);
            }
        }
    }
    write_varlong(0, &mut tail);
    let record = Record { timestamp_delta, offset_delta, key, value, attributes: 0, tail: &tail };
    record.write(timestamp_delta, out);
}
