//! Payloads of topics, and schemas.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flechtwerk::fuzzing::read("codecs", bytes));
