//! Reading frames: a length and so many bytes.
//!
//! Either side can claim any length. Memory follows the bytes that really came, and a frame that is too long ends its
//! connection before it is read.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest frame: what a Kafka takes in one request by default, and as much again for an answer with one record too many.
const LIMIT: usize = 200 * 1024 * 1024;
/// Up to this length a frame's memory is taken at once; beyond, it grows with what has come.
const PIECE: usize = 256 * 1024;
/// The length in front.
pub(crate) const PREFIX: usize = 4;

/// Why no frame could be read. Each ends the connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {length} bytes, but {min} to {LIMIT} are allowed")]
    Length { length: i32, min: usize },
    #[error("the connection ended within a frame")]
    CutOff,
    #[error("reading failed")]
    Io(#[from] io::Error),
}

/// The next frame with its length in front; `None` where the other side has closed the connection between two frames.
pub(crate) async fn next(
    from: &mut (impl AsyncRead + Unpin),
    min: usize,
) -> Result<Option<Vec<u8>>, FrameError> {
    let mut prefix = [0u8; PREFIX];
    match from.read(&mut prefix).await? {
        0 => return Ok(None),
        n => from.read_exact(prefix.get_mut(n..).unwrap_or_default()).await.map_err(cut_off)?,
    };
    let claimed = i32::from_be_bytes(prefix);
    let length = match usize::try_from(claimed) {
        Ok(length) if (min..=LIMIT).contains(&length) => length,
        _ => return Err(FrameError::Length { length: claimed, min }),
    };
    let mut frame = Vec::with_capacity(PREFIX + length.min(PIECE));
    frame.extend_from_slice(&prefix);
    let read = from.take(length as u64).read_to_end(&mut frame).await?;
    if read < length { Err(FrameError::CutOff) } else { Ok(Some(frame)) }
}

fn cut_off(error: io::Error) -> FrameError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => FrameError::CutOff,
        _ => FrameError::Io(error),
    }
}

/// Puts the right length in front of a frame whose content has changed.
pub(crate) fn set_length(frame: &mut [u8]) {
    let length = u32::try_from(frame.len().saturating_sub(PREFIX)).unwrap_or(u32::MAX);
    if let Some(prefix) = frame.first_chunk_mut::<PREFIX>() {
        *prefix = length.to_be_bytes();
    }
}
