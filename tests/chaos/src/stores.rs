//! The stores that the instances leave behind: their stamps and what is in them.

use std::path::Path;

use flechtwerk_checkers::state::Entries;

/// What is in a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// The name of the last transaction in it.
    pub stamp: Option<String>,
    /// Kinds and keys with their values.
    pub entries: Entries,
}

/// Reads the store of a task, if there is one. `state`: the folder of an instance's state.
#[cfg(feature = "rocksdb")]
pub fn read(state: &Path, group: &str, partition: i32) -> anyhow::Result<Option<Content>> {
    use anyhow::Context;

    let folder = state.join(group).join(partition.to_string());
    if !folder.join("CURRENT").exists() {
        return Ok(None);
    }
    let place = || format!("read the store {}", folder.display());
    let db =
        rocksdb::DB::open_for_read_only(&rocksdb::Options::default(), &folder, false).with_context(place)?;
    let mut content = Content::default();
    for entry in db.iterator(rocksdb::IteratorMode::Start) {
        let (key, value) = entry.with_context(place)?;
        match key.first() {
            // States and timers have small kinds.
            Some(0..=15) => drop(content.entries.insert(key.into_vec(), value.into_vec())),
            _ if &*key == b"\xffstamp" => content.stamp = Some(String::from_utf8_lossy(&value).into_owned()),
            _ => {}
        }
    }
    Ok(Some(content))
}

/// There is none on disk.
#[cfg(not(feature = "rocksdb"))]
pub fn read(_: &Path, _: &str, _: i32) -> anyhow::Result<Option<Content>> {
    Ok(None)
}

#[cfg(all(test, feature = "rocksdb"))]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_its_stamp_and_its_entries() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(read(dir.path(), "group", 3).expect("no store"), None);
        let folder = dir.path().join("group/3");
        std::fs::create_dir_all(&folder).expect("a folder");
        let db = rocksdb::DB::open_default(&folder).expect("a database");
        for (key, value) in [(&b"\0a"[..], "1"), (b"\xffstamp", "o:1:-"), (b"\xffidentity", "x")] {
            db.put(key, value).expect("put");
        }
        drop(db);
        let content = read(dir.path(), "group", 3).expect("a store").expect("a store");
        assert_eq!(content.stamp.as_deref(), Some("o:1:-"));
        assert_eq!(content.entries, Entries::from([(b"\0a".to_vec(), b"1".to_vec())]));
    }
}
