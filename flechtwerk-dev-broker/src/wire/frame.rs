//! Reading frames: a length and so many bytes.
//!
//! A client can claim any length. Memory follows the bytes that really came, the limit is that of the request's API, and
//! all connections together have a budget for what they have begun to send.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::api::Api;

/// Up to this length a frame's memory is taken at once; beyond, it grows with what has come.
const PIECE: usize = 256 * 1024;
/// Key, version and correlation id: what every request has.
const MIN_FRAME: usize = 8;

/// Why no frame could be read. Each closes the connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {length} bytes, but {MIN_FRAME} to {limit} are allowed")]
    Length { length: i64, limit: usize },
    #[error("a frame of the unknown api key {0}")]
    UnknownApi(i16),
    #[error("the connection ended within a frame")]
    CutOff,
    #[error("all connections together hold more than {0} bytes of unfinished requests and answers")]
    Budget(usize),
    #[error("reading failed")]
    Io(#[source] io::Error),
}

/// How many bytes of requests that are being read, and of answers that are being written, may be in memory at a time.
#[derive(Debug, Clone)]
pub(crate) struct FrameBudget {
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl FrameBudget {
    pub(crate) fn new(limit: usize) -> FrameBudget {
        FrameBudget { used: Arc::default(), limit }
    }

    /// Takes so many bytes, for an answer that is being written.
    pub(crate) fn take(&self, bytes: usize) -> Result<Share, FrameError> {
        let mut share = self.nothing();
        share.grow(bytes)?;
        Ok(share)
    }

    fn nothing(&self) -> Share {
        Share { used: Arc::clone(&self.used), limit: self.limit, bytes: 0 }
    }
}

/// What one frame has taken of the budget; given back when the frame is read, written or given up.
#[must_use]
pub(crate) struct Share {
    used: Arc<AtomicUsize>,
    limit: usize,
    bytes: usize,
}

impl Share {
    fn grow(&mut self, bytes: usize) -> Result<(), FrameError> {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes = self.bytes.saturating_add(bytes);
        if before.saturating_add(bytes) > self.limit { Err(FrameError::Budget(self.limit)) } else { Ok(()) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Reads the frames of one connection.
pub(crate) struct FrameReader<R> {
    from: R,
    limit: usize,
    budget: FrameBudget,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(from: R, limit: usize, budget: FrameBudget) -> FrameReader<R> {
        FrameReader { from, limit, budget }
    }

    /// The next frame without its length; `None` where the client has closed the connection between two frames.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        let mut prefix = [0u8; 4];
        match self.from.read(&mut prefix).await.map_err(FrameError::Io)? {
            0 => return Ok(None),
            n => {
                let rest = prefix.get_mut(n..).unwrap_or_default();
                self.fill(rest).await?;
            }
        }
        let claimed = i32::from_be_bytes(prefix);
        let length = self.checked(claimed, self.limit)?;
        let mut start = [0u8; MIN_FRAME];
        self.fill(&mut start).await?;
        let [key_high, key_low, ..] = start;
        let key = i16::from_be_bytes([key_high, key_low]);
        let api = Api::from_key(key).ok_or(FrameError::UnknownApi(key))?;
        self.checked(claimed, api.max_frame(self.limit))?;

        let mut share = self.budget.nothing();
        let mut frame = Vec::new();
        frame.reserve_exact(length.min(PIECE));
        frame.extend_from_slice(&start);
        while frame.len() < length {
            let have = frame.len();
            let piece = (length.saturating_sub(have)).min(PIECE.max(have));
            share.grow(piece)?;
            let end = have.saturating_add(piece);
            frame.reserve_exact(piece);
            frame.resize(end, 0);
            self.fill(frame.get_mut(have..).unwrap_or_default()).await?;
        }
        // Exactly as long as it claimed: what a log keeps of it has no slack.
        Ok(Some(Bytes::from(frame.into_boxed_slice())))
    }

    fn checked(&self, length: i32, limit: usize) -> Result<usize, FrameError> {
        match usize::try_from(length) {
            Ok(length) if (MIN_FRAME..=limit).contains(&length) => Ok(length),
            _ => Err(FrameError::Length { length: i64::from(length), limit }),
        }
    }

    async fn fill(&mut self, into: &mut [u8]) -> Result<(), FrameError> {
        match self.from.read_exact(into).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(FrameError::CutOff),
            Err(error) => Err(FrameError::Io(error)),
        }
    }
}
