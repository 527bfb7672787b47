//! A short run of each target. The long one is `examples/fuzz.rs`.

use super::*;

const SESSIONS: u64 = 150;

#[test]
fn frames_that_lie() {
    (0..2_000).for_each(|seed| frames(&mut Entropy::seeded(seed)));
}

#[test]
fn requests_that_lie() {
    let answered: usize = (0..SESSIONS).map(|seed| requests(&mut Entropy::seeded(seed))).sum();
    assert!(answered > 3_000, "only {answered} requests were good enough for an answer");
}

#[test]
fn batches_that_lie() {
    (0..500).for_each(|seed| logs(&mut Entropy::seeded(seed)));
}

#[test]
fn data_folders_that_are_damaged() {
    let parent = tempfile::tempdir().unwrap();
    let started =
        (0..SESSIONS).filter(|seed| data_folder(parent.path(), &mut Entropy::seeded(*seed))).count();
    assert!((1..SESSIONS as usize).contains(&started), "{started} of {SESSIONS} started");
}
