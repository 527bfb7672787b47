//! Reading frames: a length and so many bytes.
//!
//! A client can claim any length. Memory follows the bytes that really came, the limit is that of the request's API, and
//! all connections together have a budget for what they have begun to send.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::ahead::ReadAhead;
use super::api::Api;

/// Up to this length a frame's memory is taken at once; beyond, it grows with what has come.
const PIECE: usize = 256 * 1024;
/// A client that has sent or read nothing for so long stands still.
pub(crate) const STALLED: Duration = Duration::from_secs(1);
/// For so long a request or an answer waits for memory.
const PATIENCE: Duration = Duration::from_secs(10);
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
    #[error("the client stands still, and others need the memory")]
    Stalled,
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
    pub(crate) async fn take(&self, bytes: usize) -> Result<Share, FrameError> {
        let mut share = self.nothing();
        share.grow(bytes).await?;
        Ok(share)
    }

    /// So much is taken that a client which stands still has to go.
    pub(crate) fn is_tight(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.limit / 2
    }

    /// Nothing yet.
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
    /// Waits for a while where there is not so much left: those that stand still are being thrown out.
    async fn grow(&mut self, bytes: usize) -> Result<(), FrameError> {
        let deadline = Instant::now() + PATIENCE;
        while !self.try_grow(bytes) {
            let never = self.bytes.saturating_add(bytes) > self.limit;
            if never || Instant::now() >= deadline {
                return Err(FrameError::Budget(self.limit));
            }
            tokio::time::sleep(STALLED / 20).await;
        }
        Ok(())
    }

    /// Gives back what is above so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let rest = self.bytes.saturating_sub(bytes);
        self.used.fetch_sub(rest, Ordering::Relaxed);
        self.bytes = self.bytes.saturating_sub(rest);
    }

    fn try_grow(&mut self, bytes: usize) -> bool {
        let enough = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        let grown = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough).is_ok();
        if grown {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        grown
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

impl<R: AsyncRead + Unpin> FrameReader<ReadAhead<R>> {
    /// Returns when the client has closed the connection; frames that it sends until then are kept.
    pub(crate) async fn closed(&mut self) {
        self.from.closed().await;
    }
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
            share.grow(piece).await?;
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
        let mut rest = into;
        while !rest.is_empty() {
            match tokio::time::timeout(STALLED, self.from.read(rest)).await {
                Ok(Ok(0)) => return Err(FrameError::CutOff),
                Ok(Ok(count)) => rest = rest.get_mut(count..).unwrap_or_default(),
                Ok(Err(error)) => return Err(FrameError::Io(error)),
                Err(_) if self.budget.is_tight() => return Err(FrameError::Stalled),
                Err(_) => {}
            }
        }
        Ok(())
    }
}
