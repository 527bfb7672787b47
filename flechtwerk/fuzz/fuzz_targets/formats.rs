//! Bytes of changelogs, stores and stamps.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flechtwerk::fuzzing::read("formats", bytes));
