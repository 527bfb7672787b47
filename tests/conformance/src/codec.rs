//! The four codecs, in their simplest form: frames that store bytes instead of compressing them. A broker has to take them
//! as compressed, and no check needs a library for them.

/// Gzip: one stored block.
pub const GZIP: i16 = 1;
/// Snappy without framing: one literal.
pub const SNAPPY: i16 = 2;
/// LZ4 frame: one stored block.
pub const LZ4: i16 = 3;
/// Zstandard: one raw block.
pub const ZSTD: i16 = 4;

/// The bytes in the given codec's frame. At most 255 bytes.
pub fn wrap(codec: i16, bytes: &[u8]) -> Vec<u8> {
    let short = u8::try_from(bytes.len()).expect("at most 255 bytes");
    let mut out = Vec::new();
    match codec {
        GZIP => {
            out.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
            out.extend([1, short, 0, !short, 0xff]);
            out.extend(bytes);
            out.extend(crc32(bytes).to_le_bytes());
            out.extend(u32::from(short).to_le_bytes());
        }
        SNAPPY => {
            if short >= 0x80 {
                out.extend([short & 0x7f | 0x80, 1]);
            } else {
                out.push(short);
            }
            // A literal whose length less one follows in one byte.
            out.extend([60 << 2, short - 1]);
            out.extend(bytes);
        }
        LZ4 => {
            // Magic, version 1 with independent blocks, blocks of 64 KiB, and the checksum of these two bytes.
            out.extend([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
            out.extend((0x8000_0000 | u32::from(short)).to_le_bytes());
            out.extend(bytes);
            out.extend([0, 0, 0, 0]);
        }
        ZSTD => {
            // Magic, a single segment whose size follows in one byte, then the last block, raw.
            out.extend([0x28, 0xb5, 0x2f, 0xfd, 0x20, short]);
            out.extend(&(1 | u32::from(short) << 3).to_le_bytes()[..3]);
            out.extend(bytes);
        }
        _ => out.extend(bytes),
    }
    out
}

/// The bytes that [`wrap`] has put into a frame.
pub fn unwrap(codec: i16, frame: &[u8]) -> Vec<u8> {
    let (front, back) = match codec {
        GZIP => (15, 8),
        SNAPPY => (if frame[0] >= 0x80 { 4 } else { 3 }, 0),
        LZ4 => (11, 4),
        ZSTD => (9, 0),
        _ => (0, 0),
    };
    frame[front..frame.len() - back].to_vec()
}

/// The checksum of gzip.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
