//! The journal of the coordinators: records appended in groups, each group whole or not there at all.
//!
//! A group is its length, the length's CRC, the CRC of what follows, and the records, each with its length. The length
//! has a CRC of its own, so that a wrong one is told from a group that was cut off when the broker was killed.

use std::path::PathBuf;

use bytes::Bytes;

use super::StorageError;
use super::files::AppendFile;

const HEAD: usize = 12;
/// A journal below this size is not worth rewriting.
const MIN_REWRITE: u64 = 1024 * 1024;
/// A journal is rewritten when it is this many times as large as after the last time.
const GROWTH: u64 = 4;

/// The journal file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: AppendFile,
    /// Its length after it was last rewritten.
    rewritten: u64,
}

impl Journal {
    /// Opens the journal with all its records; cuts off an incomplete last group.
    pub(crate) fn open(path: PathBuf, fsync: bool) -> Result<(Self, Vec<Bytes>), StorageError> {
        let mut file = AppendFile::new(path, fsync);
        let bytes = match std::fs::read(file.path()) {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Bytes::new(),
            Err(error) => return Err(StorageError::io("read", file.path())(error)),
        };
        let mut records = Vec::new();
        let mut position = 0;
        loop {
            let rest = bytes.slice(position..);
            let size = read_group(&rest, &mut records)
                .map_err(|reason| StorageError::damaged(file.path(), position as u64, reason))?;
            match size {
                Some(size) => position += size,
                None => break,
            }
        }
        if position < bytes.len() {
            tracing::warn!(
                file = %file.path().display(),
                position,
                bytes = bytes.len() - position,
                "the last write was cut off, its bytes are removed"
            );
            file.truncate(position as u64)?;
        }
        file.set_len(position as u64);
        Ok((Self { file, rewritten: 0 }, records))
    }

    /// Appends these records as one group.
    pub(crate) fn append(&mut self, records: &[Bytes]) -> Result<(), StorageError> {
        if records.is_empty() { Ok(()) } else { self.file.append(&group(records)) }
    }

    /// The file is several times as large as it would be when rewritten.
    pub(crate) fn wants_rewrite(&self) -> bool {
        self.file.len() > MIN_REWRITE.max(self.rewritten.saturating_mul(GROWTH))
    }

    /// Replaces everything by these records.
    pub(crate) fn rewrite(&mut self, records: &[Bytes]) -> Result<(), StorageError> {
        let bytes = if records.is_empty() { Vec::new() } else { group(records) };
        self.file.replace_with(std::iter::once(bytes.as_slice()))?;
        self.rewritten = self.file.len();
        Ok(())
    }
}

fn group(records: &[Bytes]) -> Vec<u8> {
    let mut body = Vec::new();
    for record in records {
        body.extend_from_slice(&u32::try_from(record.len()).unwrap_or(u32::MAX).to_be_bytes());
        body.extend_from_slice(record);
    }
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = Vec::with_capacity(HEAD + body.len());
    out.extend_from_slice(&length);
    out.extend_from_slice(&crc32c::crc32c(&length).to_be_bytes());
    out.extend_from_slice(&crc32c::crc32c(&body).to_be_bytes());
    out.extend_from_slice(&body);
    out
}

/// Reads the group at the start; returns its size, `None` if the bytes end before the group does.
fn read_group(bytes: &Bytes, records: &mut Vec<Bytes>) -> Result<Option<usize>, &'static str> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let Some((length_crc, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    if crc32c::crc32c(length) != u32::from_be_bytes(*length_crc) {
        return Err("the CRC of the length is wrong");
    }
    let Some((crc, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    let Some(mut body) = rest.get(..length) else { return Ok(None) };
    if crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
        return Err("the CRC is wrong");
    }
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let (record, rest) = rest
            .split_at_checked(u32::from_be_bytes(*length) as usize)
            .ok_or("a record's length is wrong")?;
        records.push(bytes.slice_ref(record));
        body = rest;
    }
    if body.is_empty() { Ok(Some(HEAD + length)) } else { Err("a record's length is wrong") }
}
