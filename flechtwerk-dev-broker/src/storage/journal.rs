//! The journal of the coordinators: records appended in groups, each group a frame and so whole or not there at all. In a group each
//! record has its length before it.

use std::path::PathBuf;

use bytes::Bytes;

use super::StorageError;
use super::files::AppendFile;
use super::frames;

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
        let mut records = Vec::new();
        frames::load(&mut file, |group, _| read_group(group, &mut records))?;
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
    frames::frame(&[&body])
}

fn read_group(group: &[u8], records: &mut Vec<Bytes>) -> Result<(), &'static str> {
    let all = Bytes::copy_from_slice(group);
    let mut rest = &all[..];
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (record, behind) = behind
            .split_at_checked(u32::from_be_bytes(*length) as usize)
            .ok_or("a record's length is wrong")?;
        records.push(all.slice_ref(record));
        rest = behind;
    }
    if rest.is_empty() { Ok(()) } else { Err("a record's length is wrong") }
}
