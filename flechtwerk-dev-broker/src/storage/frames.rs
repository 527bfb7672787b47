//! Frames: what the journal and the segment files consist of, each of them whole or not there at all.
//!
//! A frame is its length, the length's CRC, the CRC of what follows, and what follows. The length has a CRC of its own, so that a
//! wrong one is told from a frame that was cut off when the broker was killed. Only the last frame can be cut off; anything else
//! is damage.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};

use super::StorageError;
use super::files::AppendFile;

const HEAD: usize = 12;
const READ_BUFFER: usize = 256 * 1024;

/// One frame around these bytes, which lie behind each other in it.
pub(super) fn frame(parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let crc = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
    let mut out = Vec::with_capacity(HEAD + length);
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&crc32c::crc32c(&length).to_be_bytes());
    out.extend_from_slice(&crc.to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// Reads all frames of a file in order, each with whether it is the first, and cuts off an incomplete last one. An error of `take` is
/// damage at that frame.
pub(super) fn load(
    file: &mut AppendFile,
    mut take: impl FnMut(&[u8], bool) -> Result<(), &'static str>,
) -> Result<(), StorageError> {
    let path = file.path().to_path_buf();
    let handle = match File::open(&path) {
        Ok(handle) => handle,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StorageError::io("open", &path)(error)),
    };
    let total = handle.metadata().map_err(StorageError::io("open", &path))?.len();
    let mut reader = BufReader::with_capacity(READ_BUFFER, handle);
    let mut body = Vec::new();
    let mut position = 0_u64;
    while position < total {
        let next = read_frame(&mut reader, total - position, &mut body)
            .map_err(StorageError::io("read", &path))?
            .and_then(|size| size.map(|size| take(&body, position == 0).map(|()| size)).transpose())
            .map_err(|reason| StorageError::damaged(&path, position, reason))?;
        let Some(size) = next else {
            tracing::warn!(
                file = %path.display(),
                position,
                bytes = total - position,
                "the last write was cut off, its bytes are removed"
            );
            return file.truncate(position);
        };
        position += size;
    }
    file.set_len(position);
    Ok(())
}

/// Reads the next frame into `body`; its size, or `None` where the `left` bytes of the file end before it does.
fn read_frame(
    reader: &mut impl Read,
    left: u64,
    body: &mut Vec<u8>,
) -> std::io::Result<Result<Option<u64>, &'static str>> {
    let mut head = [0; HEAD];
    if left < HEAD as u64 {
        return Ok(Ok(None));
    }
    reader.read_exact(&mut head)?;
    let [l0, l1, l2, l3, c0, c1, c2, c3, b0, b1, b2, b3] = head;
    let length = [l0, l1, l2, l3];
    if crc32c::crc32c(&length) != u32::from_be_bytes([c0, c1, c2, c3]) {
        return Ok(Err("the CRC of a length is wrong"));
    }
    let length = u64::from(u32::from_be_bytes(length));
    let size = HEAD as u64 + length;
    if size > left {
        return Ok(Ok(None));
    }
    body.clear();
    reader.take(length).read_to_end(body)?;
    if crc32c::crc32c(body) != u32::from_be_bytes([b0, b1, b2, b3]) {
        return Ok(Err("the CRC is wrong"));
    }
    Ok(Ok(Some(size)))
}
