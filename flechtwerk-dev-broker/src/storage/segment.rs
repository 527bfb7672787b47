//! The file that holds the batches of a partition.
//!
//! Batches lie behind each other as they are sent. Between them lie frames of our own, which begin like a batch with the
//! impossible base offset -1: the log's state at the point where the file was rewritten, and moved log starts. Only the
//! end of the file may be cut off, as a killed broker leaves it; anything else is damage.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::StorageError;
use super::files::AppendFile;
use crate::log::batch::{BatchHeader, LENGTH_OVERHEAD};

const FRAME_MARK: i64 = -1;
const STATE: u8 = 1;
const LOG_START: u8 = 2;
/// CRC and kind, which every frame of our own has.
const FRAME_OVERHEAD: usize = 5;

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
        let path = self.file.path().to_path_buf();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StorageError::io("open", &path)(error)),
        };
        let total = file.metadata().map_err(StorageError::io("open", &path))?.len();
        let mut reader = BufReader::with_capacity(256 * 1024, file);
        let mut position = 0_u64;
        let mut buffer = Vec::new();
        while position < total {
            buffer.clear();
            let left = total - position;
            read_up_to(&mut reader, LENGTH_OVERHEAD as u64, &mut buffer, &path)?;
            let size =
                frame_size(&buffer).map_err(|reason| StorageError::damaged(&path, position, reason))?;
            let Some(size) = size.filter(|size| *size <= left) else {
                read_up_to(&mut reader, left, &mut buffer, &path)?;
                if holds_batch(&buffer) {
                    return Err(StorageError::damaged(&path, position, "a length there is wrong"));
                }
                tracing::warn!(
                    file = %path.display(),
                    position,
                    bytes = left,
                    "the last write was cut off, its bytes are removed"
                );
                self.file.truncate(position)?;
                return Ok(());
            };
            read_up_to(&mut reader, size - LENGTH_OVERHEAD as u64, &mut buffer, &path)?;
            frame(&buffer, position == 0)
                .and_then(&mut take)
                .map_err(|reason| StorageError::damaged(&path, position, reason))?;
            position += size;
        }
        self.file.set_len(position);
        Ok(())
    }

    /// Appends a batch.
    pub(crate) fn append_batch(&mut self, batch: &[u8]) -> Result<(), StorageError> {
        self.file.append(batch)
    }

    /// Notes that the log begins at that offset.
    pub(crate) fn append_log_start(&mut self, offset: i64) -> Result<(), StorageError> {
        self.file.append(&own_frame(LOG_START, &offset.to_be_bytes()))
    }

    /// Replaces the whole file, at once, by this state and these batches.
    pub(crate) fn rewrite<'a>(
        &mut self,
        state: &[u8],
        batches: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), StorageError> {
        let state = Cow::from(own_frame(STATE, state));
        self.file.replace_with(std::iter::once(state).chain(batches.map(Cow::from)))
    }
}

fn own_frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut body = vec![kind];
    body.extend_from_slice(payload);
    let mut out = FRAME_MARK.to_be_bytes().to_vec();
    out.extend_from_slice(&i32::try_from(body.len() + 4).unwrap_or(i32::MAX).to_be_bytes());
    out.extend_from_slice(&crc32c::crc32c(&body).to_be_bytes());
    out.extend_from_slice(&body);
    out
}

/// The size of the frame that begins like this; `None` if even that is cut off.
fn frame_size(head: &[u8]) -> Result<Option<u64>, &'static str> {
    let Some((mark, rest)) = head.split_first_chunk::<8>() else { return Ok(None) };
    let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
    let offset = i64::from_be_bytes(*mark);
    if offset < FRAME_MARK {
        return Err("there is neither a batch nor a frame");
    }
    let length = u64::try_from(i32::from_be_bytes(*length)).map_err(|_| "a length there is negative")?;
    Ok(Some(length + LENGTH_OVERHEAD as u64))
}

fn frame(bytes: &[u8], first: bool) -> Result<Frame<'_>, &'static str> {
    if bytes.first_chunk::<8>() != Some(&FRAME_MARK.to_be_bytes()) {
        return Ok(Frame::Batch(bytes));
    }
    let body = bytes
        .get(LENGTH_OVERHEAD..)
        .filter(|body| body.len() >= FRAME_OVERHEAD)
        .ok_or("the frame is short")?;
    let (crc, body) = body.split_first_chunk::<4>().ok_or("the frame is short")?;
    if crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
        return Err("the CRC is wrong");
    }
    match body.split_first() {
        Some((&STATE, state)) if first => Ok(Frame::State(state)),
        Some((&LOG_START, offset)) => {
            let offset = offset.first_chunk::<8>().ok_or("the frame is short")?;
            Ok(Frame::LogStart(i64::from_be_bytes(*offset)))
        }
        _ => Err("the frame is unknown"),
    }
}

/// Whether a whole batch lies anywhere behind the first byte: then these bytes are no write that was cut off.
fn holds_batch(bytes: &[u8]) -> bool {
    (1..bytes.len()).any(|start| {
        let rest = bytes.get(start..).unwrap_or_default();
        BatchHeader::parse(rest).is_ok_and(|header| {
            header.base_offset >= 0 && header.check_counts().is_ok() && header.verify(rest).is_ok()
        })
    })
}

fn read_up_to(
    reader: &mut impl Read,
    count: u64,
    buffer: &mut Vec<u8>,
    path: &Path,
) -> Result<(), StorageError> {
    reader.by_ref().take(count).read_to_end(buffer).map_err(StorageError::io("read", path))?;
    Ok(())
}
