//! Requests of which some are damaged, as frames.
#![no_main]

use flechtwerk_dev_broker::fuzzing::{Entropy, frames};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = frames(&mut Entropy::bytes(bytes));
});
