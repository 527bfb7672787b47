//! Settings and their values.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flechtwerk::fuzzing::read("settings", bytes));
