//! A session of requests against a broker's state.
#![no_main]

use flechtwerk_dev_broker::fuzzing::{Entropy, requests};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = requests(&mut Entropy::bytes(bytes));
});
