//! Opening and closing the compressed records of a batch, with limits against bytes that lie about what they hold.

use std::borrow::Cow;
use std::io::{Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::batch::{BatchError, Compression};

/// The most that a batch may hold when it is opened.
const MAX_OPENED: usize = 128 * 1024 * 1024;
/// Snappy makes at most 64 bytes out of 3.
const MAX_SNAPPY_RATIO: usize = 22;
/// What the framing that Java uses begins with, followed by two versions of four bytes.
const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const XERIAL_HEADER: usize = 16;
/// What Java puts into one block of that framing.
const XERIAL_BLOCK: usize = 32 * 1024;

/// The records' bytes as they were before they were compressed.
pub(crate) fn decompress(compression: Compression, body: &[u8]) -> Result<Cow<'_, [u8]>, BatchError> {
    match compression {
        Compression::None => Ok(Cow::Borrowed(body)),
        Compression::Gzip => gunzip(body).map(Cow::Owned),
        Compression::Snappy => unsnap(body).map(Cow::Owned),
        Compression::Lz4 | Compression::Zstd => Err(BatchError::Opaque),
    }
}

/// Compresses records' bytes again, in a form that all clients read.
pub(crate) fn compress(compression: Compression, body: Vec<u8>) -> Result<Vec<u8>, BatchError> {
    match compression {
        Compression::None => Ok(body),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(&body).map_err(|_| BatchError::Corrupt("its records can't be compressed"))?;
            encoder.finish().map_err(|_| BatchError::Corrupt("its records can't be compressed"))
        }
        Compression::Snappy => snap(&body),
        Compression::Lz4 | Compression::Zstd => Err(BatchError::Opaque),
    }
}

fn gunzip(body: &[u8]) -> Result<Vec<u8>, BatchError> {
    let mut opened = Vec::new();
    let limit = u64::try_from(MAX_OPENED).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(body)
        .take(limit)
        .read_to_end(&mut opened)
        .map_err(|_| BatchError::Corrupt("its gzip data is damaged"))?;
    if opened.len() > MAX_OPENED {
        return Err(BatchError::Corrupt("its records are too large when opened"));
    }
    Ok(opened)
}

fn unsnap(body: &[u8]) -> Result<Vec<u8>, BatchError> {
    const DAMAGED: BatchError = BatchError::Corrupt("its snappy data is damaged");
    let mut opened = Vec::new();
    if !body.starts_with(&XERIAL_MAGIC) {
        unsnap_block(body, &mut opened)?;
        return Ok(opened);
    }
    let mut rest = body.get(XERIAL_HEADER..).ok_or(DAMAGED)?;
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| DAMAGED)?;
        let (block, after) = after.split_at_checked(length).ok_or(DAMAGED)?;
        unsnap_block(block, &mut opened)?;
        rest = after;
    }
    if rest.is_empty() { Ok(opened) } else { Err(DAMAGED) }
}

fn unsnap_block(block: &[u8], opened: &mut Vec<u8>) -> Result<(), BatchError> {
    const DAMAGED: BatchError = BatchError::Corrupt("its snappy data is damaged");
    let claimed = snap::raw::decompress_len(block).map_err(|_| DAMAGED)?;
    let start = opened.len();
    // No memory for a length that these bytes can't have.
    if claimed > block.len().saturating_mul(MAX_SNAPPY_RATIO) {
        return Err(DAMAGED);
    }
    let end = start.checked_add(claimed).filter(|end| *end <= MAX_OPENED);
    let end = end.ok_or(BatchError::Corrupt("its records are too large when opened"))?;
    opened.resize(end, 0);
    let place = opened.get_mut(start..).ok_or(DAMAGED)?;
    let written = snap::raw::Decoder::new().decompress(block, place).map_err(|_| DAMAGED)?;
    opened.truncate(start.saturating_add(written));
    Ok(())
}

fn snap(body: &[u8]) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::new();
    out.extend_from_slice(&XERIAL_MAGIC);
    out.extend_from_slice(&1_i32.to_be_bytes());
    out.extend_from_slice(&1_i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in body.chunks(XERIAL_BLOCK) {
        let block = encoder
            .compress_vec(block)
            .map_err(|_| BatchError::Corrupt("its records can't be compressed"))?;
        let length =
            u32::try_from(block.len()).map_err(|_| BatchError::Corrupt("its records can't be compressed"))?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&block);
    }
    Ok(out)
}
