//! Any bytes on a connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flechtwerk_dev_broker::fuzzing::frame_bytes(bytes));
