//! Segment files: the log that is opened again is the log that was closed.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::log::tests::compaction::{History, Step, any_step};
use crate::log::tests::{Batch, NOW, all_bytes, append, cases, record};

fn config() -> LogConfig {
    LogConfig { compact: true, delete_retention_ms: 1000, ..LogConfig::default() }
}

fn segment_path(folder: &TempDir) -> PathBuf {
    folder.path().join("partitions").join(TOPIC.simple().to_string()).join("0.log")
}

fn assert_same(log: &PartitionLog, expected: &PartitionLog) {
    assert_eq!(log.state, expected.state);
    assert_eq!(log.size_bytes(), expected.size_bytes());
    assert!(all_bytes(log) == all_bytes(expected), "the batches differ");
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_log_opened_again_is_the_same(
        steps in proptest::collection::vec((any_step(), prop::bool::weighted(0.2)), 1..40),
    ) {
        let folder = TempDir::new().unwrap();
        let storage = open(&folder).unwrap();
        let mut kept = open_log(&storage, &config()).unwrap();
        let mut never_closed = PartitionLog::in_memory(config());
        let (mut history, mut other) = (History::default(), History::default());
        for (step, restart) in &steps {
            history.apply(&mut kept, step, |log, now, options| { log.compact(now, options).unwrap(); });
            other.apply(&mut never_closed, step, |log, now, options| { log.compact(now, options).unwrap(); });
            if *restart {
                drop(kept);
                kept = open_log(&storage, &config()).unwrap();
            }
            assert_same(&kept, &never_closed);
        }
        drop(kept);
        assert_same(&open_log(&storage, &config()).unwrap(), &never_closed);
    }

    /// A kill leaves a file that ends anywhere: what comes back is the log after one of the steps.
    #[test]
    fn a_file_cut_off_anywhere_is_an_earlier_log(
        steps in proptest::collection::vec(any_step(), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = TempDir::new().unwrap();
        let storage = open(&folder).unwrap();
        let mut log = open_log(&storage, &config()).unwrap();
        let mut history = History::default();
        let mut states = vec![(0, log.state.clone())];
        for step in steps.iter().filter(|step| !matches!(step, Step::Compact { .. })) {
            history.apply(&mut log, step, |_, _, _| {});
            let length = log.file.as_ref().map_or(0, |file| file.len());
            states.push((length, log.state.clone()));
        }
        drop(log);
        let path = segment_path(&folder);
        let length = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        if length > 0 {
            let cut = cut.index(usize::try_from(length).unwrap()) as u64;
            std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();
            let (left, expected) = states.iter().rfind(|(length, _)| *length <= cut).unwrap();
            let log = open_log(&storage, &config()).unwrap();
            prop_assert_eq!(&log.state, expected);
            prop_assert_eq!(std::fs::metadata(&path).unwrap().len(), *left);
        }
    }

    #[test]
    fn damage_is_found_with_its_place(at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let folder = TempDir::new().unwrap();
        let storage = open(&folder).unwrap();
        let mut log = open_log(&storage, &config()).unwrap();
        let mut ends = Vec::new();
        for sequence in 0..6 {
            append(&mut log, &Batch::idempotent((1, 0, sequence), vec![record("key", "value")]));
            ends.push(log.file.as_ref().map_or(0, |file| file.len()));
        }
        drop(log);
        let path = segment_path(&folder);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        std::fs::write(&path, &bytes).unwrap();
        let start = ends.iter().rfind(|end| **end <= at as u64).unwrap_or(&0);
        prop_assert_eq!(damaged_at(open_log(&storage, &config()).unwrap_err()), *start);
        prop_assert_eq!(std::fs::read(&path).unwrap(), bytes, "a damaged file is left as it is");
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let folder = TempDir::new().unwrap();
        let storage = open(&folder).unwrap();
        let path = segment_path(&folder);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        if let Ok(log) = open_log(&storage, &config()) {
            prop_assert_eq!(log.high_watermark(), 0);
        }
    }
}

#[test]
fn deleted_batches_leave_the_file_in_the_end() {
    let folder = TempDir::new().unwrap();
    let storage = open(&folder).unwrap();
    let mut log = open_log(&storage, &LogConfig::default()).unwrap();
    let value = "v".repeat(100_000);
    for sequence in 0..30 {
        append(&mut log, &Batch::idempotent((1, 0, sequence), vec![record("key", &value)]));
    }
    let full = std::fs::metadata(segment_path(&folder)).unwrap().len();
    log.delete_records(5).unwrap();
    assert!(std::fs::metadata(segment_path(&folder)).unwrap().len() > full);
    log.delete_records(29).unwrap();
    assert!(std::fs::metadata(segment_path(&folder)).unwrap().len() < full / 10);
    append(&mut log, &Batch::idempotent((1, 0, 30), vec![record("key", "value")]));
    let (state, bytes) = (log.state.clone(), all_bytes(&log));
    drop(log);
    let log = open_log(&storage, &LogConfig::default()).unwrap();
    assert_eq!(log.state, state);
    assert!(all_bytes(&log) == bytes);
    assert_eq!(log.log_start_offset(), 29);
}

#[test]
fn a_partition_without_records_has_no_file() {
    let folder = TempDir::new().unwrap();
    let storage = open(&folder).unwrap();
    let mut log = open_log(&storage, &config()).unwrap();
    assert!(!segment_path(&folder).exists());
    log.append_marker(1, 0, true, 0, NOW).unwrap();
    assert!(segment_path(&folder).exists());
}

#[test]
fn a_batch_that_can_not_be_written_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let storage = open(&folder).unwrap();
    let mut log = open_log(&storage, &config()).unwrap();
    // A file where the folder of the topic should be.
    let parent = segment_path(&folder).parent().unwrap().to_path_buf();
    std::fs::create_dir_all(parent.parent().unwrap()).unwrap();
    std::fs::write(&parent, b"").unwrap();
    let batch = Batch::idempotent((1, 0, 0), vec![record("key", "value")]);
    let error = log.append(batch.bytes(), NOW).unwrap_err();
    assert_eq!(error.code(), 56);
    assert_eq!((log.high_watermark(), log.size_bytes(), log.producers()), (0, 0, Vec::new()));
    std::fs::remove_file(&parent).unwrap();
    assert_eq!(append(&mut log, &batch), 0);
}
