//! The history of a partition log.
#![no_main]

use flechtwerk_dev_broker::fuzzing::{Entropy, logs};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = logs(&mut Entropy::bytes(bytes));
});
