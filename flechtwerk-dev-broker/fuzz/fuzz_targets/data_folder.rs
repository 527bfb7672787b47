//! A data folder with a damaged file.
#![no_main]

use flechtwerk_dev_broker::fuzzing::{Entropy, data_folder};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let parent = tempfile::tempdir().expect("a folder for temporary files");
    let _ = data_folder(parent.path(), &mut Entropy::bytes(bytes));
});
