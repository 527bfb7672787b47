//! The frame decoder: any bytes on a connection, and frames of which some lie.

use bytes::BufMut;

use super::Entropy;
use super::messages::Speaker;
use crate::requests::check;
use crate::wire::{FrameBudget, FrameReader, Parsed, RequestHeader};

/// No frame of the targets is that long.
const LIMIT: usize = 1024 * 1024;

/// Bytes as they come on a connection: read as frames, headers and messages until one is malformed.
pub fn frame_bytes(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let mut frames = FrameReader::new(bytes, LIMIT, FrameBudget::new(LIMIT));
        while let Ok(Some(frame)) = frames.next().await {
            assert!(frame.len() <= bytes.len(), "a frame is longer than what came");
            if let Ok(Parsed::Request(header, body)) = RequestHeader::parse(frame)
                && let Err(error) = check(header.api, header.version, body)
            {
                // Caught, so that it costs one connection alone; it is a defect all the same.
                assert!(
                    !error.to_string().contains("panicked"),
                    "{} {}: {error}",
                    header.api,
                    header.version
                );
            }
        }
    });
}

/// Requests of which some are damaged, and their lengths with them.
pub fn frames(entropy: &mut Entropy<'_>) {
    let speaker = Speaker::default();
    let mut bytes = Vec::new();
    for _ in 0..=entropy.below(8) {
        let mut frame = speaker.request(entropy);
        if entropy.percent(60) {
            // Without the key and the version nearly all would end there.
            entropy.damage(&mut frame, 4);
        }
        bytes.put_i32(frame.len() as i32);
        bytes.put_slice(&frame);
    }
    if entropy.percent(20) {
        entropy.damage(&mut bytes, 0);
    }
    frame_bytes(&bytes);
}
