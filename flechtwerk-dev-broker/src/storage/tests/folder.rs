//! The folder itself: lock, version, topics and journal.

use std::fs;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::log::tests::{Batch, append, cases, record};
use crate::storage::TopicMeta;

fn topic(name: &str, id: u128, configs: &[(&str, &str)]) -> TopicMeta {
    let configs = configs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    TopicMeta { name: name.into(), id: Uuid::from_u128(id), partitions: 3, configs }
}

fn journal(folder: &TempDir) -> Result<(Storage, Vec<Bytes>), StorageError> {
    Storage::open(folder.path(), StorageOptions::default(), "cluster".into())
}

fn numbered(numbers: std::ops::Range<u32>) -> Vec<Bytes> {
    numbers.map(|number| Bytes::from(format!("record {number}"))).collect()
}

#[test]
fn a_folder_has_one_broker() {
    let folder = TempDir::new().unwrap();
    let first = open(&folder).unwrap();
    let error = open(&folder).unwrap_err();
    assert!(matches!(error, StorageError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("in use by another broker"), "{error}");
    drop(first);
    open(&folder).unwrap();
}

#[test]
fn another_version_is_refused() {
    let folder = TempDir::new().unwrap();
    drop(open(&folder).unwrap());
    fs::write(folder.path().join("version"), "2\n").unwrap();
    let error = open(&folder).unwrap_err().to_string();
    assert!(error.contains("has format 2, this broker reads 3"), "{error}");
    fs::write(folder.path().join("version"), "").unwrap();
    assert!(matches!(open(&folder), Err(StorageError::Version { .. })));
}

#[test]
fn the_highest_leader_epoch_and_ports_come_back() {
    let folder = TempDir::new().unwrap();
    let mut storage = open(&folder).unwrap();
    storage.keep_leader_epoch(7).unwrap();
    storage.keep_leader_epoch(3).unwrap();
    storage.keep_ports([(1, 9092), (2, 9093)].into()).unwrap();
    storage.put_topic(topic("a", 1, &[])).unwrap();
    drop(storage);
    let storage = open(&folder).unwrap();
    assert_eq!(storage.leader_epoch(), 7);
    assert_eq!([1, 2, 3].map(|node| storage.port(node)), [Some(9092), Some(9093), None]);
}

#[test]
fn a_folder_of_someone_else_is_left_alone() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("thesis.txt"), "all of it").unwrap();
    let error = open(&folder).unwrap_err();
    assert!(matches!(error, StorageError::NotADataFolder { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_is_no_folder() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Storage::open(&file, StorageOptions::default(), "cluster".into()).unwrap_err();
    assert!(error.to_string().starts_with("can't create"), "{error}");
}

#[test]
fn topics_come_back() {
    let folder = TempDir::new().unwrap();
    let mut storage = open(&folder).unwrap();
    let odd = topic("b", 2, &[("cleanup.policy", "compact"), ("note", " two words,\n\\a line\\n ")]);
    storage.put_topic(topic("a.b-c_d", 1, &[])).unwrap();
    storage.put_topic(topic("b", 2, &[])).unwrap();
    storage.put_topic(topic("gone", 3, &[])).unwrap();
    storage.put_topic(odd.clone()).unwrap();
    storage.remove_topic("gone").unwrap();
    storage.remove_topic("never there").unwrap();
    drop(storage);
    let options = StorageOptions { fsync: true };
    let (storage, _) = Storage::open(folder.path(), options, "another".into()).unwrap();
    assert_eq!(storage.cluster_id(), "cluster");
    assert_eq!(storage.topics(), [topic("a.b-c_d", 1, &[]), odd]);
}

#[test]
fn memory_keeps_topics_while_it_lives() {
    let mut storage = Storage::in_memory("cluster".into());
    storage.put_topic(topic("a", 1, &[])).unwrap();
    storage.put_topic(topic("b", 2, &[])).unwrap();
    storage.remove_topic("a").unwrap();
    assert_eq!(storage.topics(), [topic("b", 2, &[])]);
    let mut log = storage.open_log("b", Uuid::from_u128(2), 0, LogConfig::default()).unwrap();
    assert_eq!(append(&mut log, &Batch::plain(vec![record("k", "v")])), 0);
    storage.append_journal(&numbered(0..3)).unwrap();
    assert!(!storage.journal_wants_snapshot());
}

#[test]
fn a_removed_topic_leaves_no_files() {
    let folder = TempDir::new().unwrap();
    let mut storage = open(&folder).unwrap();
    let files = folder.path().join("partitions");
    for id in [1, 2] {
        storage.put_topic(topic(&format!("topic-{id}"), id, &[])).unwrap();
        let mut log = storage.open_log("", Uuid::from_u128(id), 0, LogConfig::default()).unwrap();
        append(&mut log, &Batch::plain(vec![record("k", "v")]));
    }
    storage.remove_topic("topic-1").unwrap();
    assert_eq!(fs::read_dir(&files).unwrap().count(), 1);
    // As if killed between the two steps of removing a topic.
    fs::create_dir(files.join(Uuid::from_u128(9).simple().to_string())).unwrap();
    drop(storage);
    let storage = open(&folder).unwrap();
    assert_eq!(fs::read_dir(&files).unwrap().count(), 1);
    let log = storage.open_log("", Uuid::from_u128(2), 0, LogConfig::default()).unwrap();
    assert_eq!(log.high_watermark(), 1);
}

#[test]
fn damaged_topics_are_refused() {
    let folder = TempDir::new().unwrap();
    let mut storage = open(&folder).unwrap();
    storage.put_topic(topic("a", 1, &[("k", "v")])).unwrap();
    drop(storage);
    let path = folder.path().join("topics");
    let text = fs::read_to_string(&path).unwrap();
    for damaged in [
        text.replace("topic", "tropic"),
        text.replace(" v", " w"),
        text[..text.len() / 2].into(),
        String::new(),
    ] {
        fs::write(&path, damaged).unwrap();
        let error = open(&folder).unwrap_err();
        assert!(matches!(&error, StorageError::Damaged { path, .. } if path.ends_with("topics")), "{error}");
    }
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert_eq!(damaged_at(open(&folder).unwrap_err()), 0);
}

#[test]
fn a_folder_that_has_lost_its_topics_is_refused() {
    let folder = TempDir::new().unwrap();
    let mut storage = open(&folder).unwrap();
    storage.put_topic(topic("a", 1, &[])).unwrap();
    let mut log = storage.open_log("", Uuid::from_u128(1), 0, LogConfig::default()).unwrap();
    append(&mut log, &Batch::plain(vec![record("k", "v")]));
    drop((storage, log));
    fs::remove_file(folder.path().join("topics")).unwrap();
    let error = open(&folder).unwrap_err().to_string();
    assert!(error.contains("topics is damaged at byte 0: it is missing"), "{error}");
    assert!(
        folder.path().join("partitions").join(Uuid::from_u128(1).simple().to_string()).join("0.log").exists()
    );
}

#[test]
fn the_journal_comes_back_in_order() {
    let folder = TempDir::new().unwrap();
    let (mut storage, records) = journal(&folder).unwrap();
    assert!(records.is_empty());
    storage.append_journal(&numbered(0..3)).unwrap();
    storage.append_journal(&[]).unwrap();
    storage.append_journal(&[Bytes::new()]).unwrap();
    drop(storage);
    let (mut storage, records) = journal(&folder).unwrap();
    assert_eq!(records, [numbered(0..3), vec![Bytes::new()]].concat());
    storage.rewrite_journal(&numbered(7..9)).unwrap();
    storage.append_journal(&numbered(9..10)).unwrap();
    drop(storage);
    assert_eq!(journal(&folder).unwrap().1, numbered(7..10));
}

#[test]
fn a_journal_is_rewritten_once_it_has_grown() {
    let folder = TempDir::new().unwrap();
    let (mut storage, _) = journal(&folder).unwrap();
    let large = [Bytes::from(vec![1; 600_000])];
    storage.append_journal(&large).unwrap();
    assert!(!storage.journal_wants_snapshot());
    storage.append_journal(&large).unwrap();
    assert!(storage.journal_wants_snapshot());
    storage.rewrite_journal(&large).unwrap();
    assert!(!storage.journal_wants_snapshot());
    storage.append_journal(&large).unwrap();
    assert!(!storage.journal_wants_snapshot(), "it is not yet four times as large");
    drop(storage);
    assert_eq!(journal(&folder).unwrap().1.len(), 2);
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_journal_cut_off_anywhere_has_whole_groups(cut in any::<prop::sample::Index>()) {
        let folder = TempDir::new().unwrap();
        let (mut storage, _) = journal(&folder).unwrap();
        let mut ends = vec![(0, 0)];
        let path = folder.path().join("journal");
        for group in 0..5_u32 {
            storage.append_journal(&numbered(group * 2..group * 2 + 2)).unwrap();
            ends.push((fs::metadata(&path).unwrap().len(), group * 2 + 2));
        }
        drop(storage);
        let bytes = fs::read(&path).unwrap();
        let cut = cut.index(bytes.len());
        fs::write(&path, &bytes[..cut]).unwrap();
        let (_, left) = ends.iter().rfind(|(end, _)| *end <= cut as u64).unwrap();
        let (mut storage, records) = journal(&folder).unwrap();
        prop_assert_eq!(records, numbered(0..*left));
        storage.append_journal(&numbered(90..91)).unwrap();
        drop(storage);
        prop_assert_eq!(journal(&folder).unwrap().1, [numbered(0..*left), numbered(90..91)].concat());
    }

    #[test]
    fn a_damaged_journal_is_refused(at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let folder = TempDir::new().unwrap();
        let (mut storage, _) = journal(&folder).unwrap();
        storage.append_journal(&numbered(0..3)).unwrap();
        let path = folder.path().join("journal");
        let second = fs::metadata(&path).unwrap().len();
        storage.append_journal(&numbered(3..5)).unwrap();
        drop(storage);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        fs::write(&path, &bytes).unwrap();
        let expected = if (at as u64) < second { 0 } else { second };
        prop_assert_eq!(damaged_at(journal(&folder).unwrap_err()), expected);
        prop_assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}
