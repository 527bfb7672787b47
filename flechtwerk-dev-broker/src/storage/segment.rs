//! The file that holds the batches of a partition.
//!
//! Each batch lies in a frame, as it is sent to readers: a batch's own CRC does not cover its offset, its length and its leader epoch,
//! the frame's does. Frames of other kinds hold the log's state at the point where the file was rewritten, and moved log starts.

use std::path::PathBuf;

use super::StorageError;
use super::files::AppendFile;
use super::frames;

/// What a frame begins with: what is in it.
const STATE: u8 = 1;
const LOG_START: u8 = 2;
const BATCH: u8 = 3;

/// What lies in a segment file.
#[derive(Debug)]
pub(crate) enum Frame<'a> {
    /// A record batch.
    Batch(&'a [u8]),
    /// The log's state; only at the start of the file.
    State(&'a [u8]),
    /// The log begins at this offset from here on.
    LogStart(i64),
}

/// A partition's segment file, open for appending.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    file: AppendFile,
}

impl SegmentFile {
    /// The file at a path, which need not exist yet. [`Self::load`] it before anything else.
    pub(crate) fn new(path: PathBuf, fsync: bool) -> Self {
        Self { file: AppendFile::new(path, fsync) }
    }

    /// The bytes in the file.
    pub(crate) fn len(&self) -> u64 {
        self.file.len()
    }

    /// Reads all frames in order and cuts off an incomplete last one. An error of `take` is damage at that frame.
    pub(crate) fn load(
        &mut self,
        mut take: impl FnMut(Frame<'_>) -> Result<(), &'static str>,
    ) -> Result<(), StorageError> {
        frames::load(&mut self.file, |body, first| take(parse(body, first)?))
    }

    /// Appends a batch.
    pub(crate) fn append_batch(&mut self, batch: &[u8]) -> Result<(), StorageError> {
        self.file.append(&frames::frame(&[&[BATCH], batch]))
    }

    /// Notes that the log begins at that offset.
    pub(crate) fn append_log_start(&mut self, offset: i64) -> Result<(), StorageError> {
        self.file.append(&frames::frame(&[&[LOG_START], &offset.to_be_bytes()]))
    }

    /// Replaces the whole file, at once, by this state and these batches.
    pub(crate) fn rewrite<'a>(
        &mut self,
        state: &[u8],
        batches: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), StorageError> {
        let state = frames::frame(&[&[STATE], state]);
        self.file.replace_with(
            std::iter::once(state).chain(batches.map(|batch| frames::frame(&[&[BATCH], batch]))),
        )
    }
}

fn parse(body: &[u8], first: bool) -> Result<Frame<'_>, &'static str> {
    match body.split_first() {
        Some((&BATCH, batch)) => Ok(Frame::Batch(batch)),
        Some((&STATE, state)) if first => Ok(Frame::State(state)),
        Some((&LOG_START, offset)) => {
            let offset = <[u8; 8]>::try_from(offset).map_err(|_| "the log start can't be read")?;
            Ok(Frame::LogStart(i64::from_be_bytes(offset)))
        }
        _ => Err("the frame is unknown"),
    }
}
