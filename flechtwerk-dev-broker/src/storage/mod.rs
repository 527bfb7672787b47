//! What a broker keeps over a restart: a data folder, or nothing at all.
//!
//! With a folder, a broker that was killed and started again is the same broker. The folder holds:
//! - `lock`, locked while a broker has the folder open
//! - `version`, the format of the folder
//! - `topics`, the cluster id, the highest leader epoch, the nodes' ports, and the topics with their ids, partitions and settings; text,
//!   rewritten by rename
//! - `partitions/TOPIC-ID/PARTITION.log`, the batches of each partition
//! - `journal`, the records of the coordinators
//!
//! All of them have check sums: a flipped bit is found when the folder is opened.

mod error;
pub(crate) mod files;
mod frames;
mod journal;
pub(crate) mod segment;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use uuid::Uuid;

pub use self::error::StorageError;
use self::journal::Journal;
use self::segment::SegmentFile;
use self::topics::TopicsFile;
use crate::log::{LogConfig, PartitionLog};

/// The format of the data folder.
const VERSION: u32 = 3;

/// A topic as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicMeta {
    /// The name.
    pub name: String,
    /// The id that a topic made anew under the same name does not share.
    pub id: Uuid,
    /// How many partitions it has.
    pub partitions: i32,
    /// The settings that differ from the defaults, sorted by name.
    pub configs: Vec<(String, String)>,
}

/// How to use a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorageOptions {
    /// Wait for the disk after each write. Without it a broker that is killed loses nothing, a machine that fails may.
    pub fsync: bool,
}

/// Where topics, partition logs and the journal are kept.
#[derive(Debug)]
pub struct Storage {
    topics: TopicsFile,
    folder: Option<Folder>,
}

/// An open data folder.
#[derive(Debug)]
struct Folder {
    journal: Journal,
    fsync: bool,
    /// Holds the lock until it is dropped.
    _lock: Lock,
}

impl Storage {
    /// Nothing outlives the process.
    pub fn in_memory(cluster_id: String) -> Self {
        Self { topics: TopicsFile::in_memory(cluster_id), folder: None }
    }

    /// Opens a data folder, or makes one with this cluster id.
    ///
    /// Returns the journal's records since (and with) the last snapshot, for the coordinators to restore themselves.
    pub fn open(
        folder: &Path,
        options: StorageOptions,
        new_cluster_id: String,
    ) -> Result<(Self, Vec<Bytes>), StorageError> {
        std::fs::create_dir_all(folder).map_err(StorageError::io("create", folder))?;
        check_owner(folder)?;
        let lock = lock(folder)?;
        check_version(folder)?;
        check_topics(folder)?;
        let topics = TopicsFile::open(folder.join("topics"), options.fsync, new_cluster_id)?;
        remove_unknown(&topics)?;
        let (journal, records) = Journal::open(folder.join("journal"), options.fsync)?;
        let folder = Folder { journal, fsync: options.fsync, _lock: lock };
        Ok((Self { topics, folder: Some(folder) }, records))
    }

    /// The cluster id, the same over restarts.
    pub fn cluster_id(&self) -> &str {
        &self.topics.cluster_id
    }

    /// The topics that were put and not removed, by name.
    pub fn topics(&self) -> Vec<TopicMeta> {
        self.topics.topics.values().cloned().collect()
    }

    /// The highest leader epoch that was kept; no partition has ever had a higher one.
    pub(crate) fn leader_epoch(&self) -> i32 {
        self.topics.leader_epoch
    }

    /// Keeps a leader epoch before a partition gets it. A lower one changes nothing.
    pub(crate) fn keep_leader_epoch(&mut self, epoch: i32) -> Result<(), StorageError> {
        self.topics.keep_leader_epoch(epoch)
    }

    /// Where a node listened last.
    pub(crate) fn port(&self, node: i32) -> Option<u16> {
        self.topics.ports.get(&node).copied()
    }

    /// Keeps where nodes listen.
    pub(crate) fn keep_ports(&mut self, ports: BTreeMap<i32, u16>) -> Result<(), StorageError> {
        self.topics.keep_ports(ports)
    }

    /// Keeps a new topic, or the changed partitions and settings of a known one.
    pub fn put_topic(&mut self, topic: TopicMeta) -> Result<(), StorageError> {
        self.topics.put(topic)
    }

    /// Forgets a topic and removes its files. After an error the topic is still there.
    pub fn remove_topic(&mut self, name: &str) -> Result<(), StorageError> {
        if let Some(topic) = self.topics.remove(name)?
            && self.folder.is_some()
            && let Err(error) = remove_folder(&topic_folder(&self.topics, topic.id))
        {
            tracing::warn!(topic = name, "files of a deleted topic stay until the next start: {error}");
        }
        Ok(())
    }

    /// Opens the log of a partition with all that is in it; an empty one if it is new. Put the topic before, and open
    /// each log once.
    pub fn open_log(
        &self,
        topic: &str,
        id: Uuid,
        partition: i32,
        config: LogConfig,
    ) -> Result<PartitionLog, StorageError> {
        let Some(folder) = &self.folder else { return Ok(PartitionLog::in_memory(config)) };
        let path = topic_folder(&self.topics, id).join(format!("{partition}.log"));
        let log = PartitionLog::open(config, SegmentFile::new(path, folder.fsync))?;
        tracing::debug!(topic, partition, end = log.high_watermark(), "partition log opened");
        Ok(log)
    }

    /// Appends coordinator records to the journal, together or not at all.
    pub fn append_journal(&mut self, records: &[Bytes]) -> Result<(), StorageError> {
        self.folder.as_mut().map_or(Ok(()), |folder| folder.journal.append(records))
    }

    /// The journal has grown so much that it should be rewritten by [`Self::rewrite_journal`].
    pub fn journal_wants_snapshot(&self) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.journal.wants_rewrite())
    }

    /// Replaces the journal by these records, which restore the same state.
    pub fn rewrite_journal(&mut self, records: &[Bytes]) -> Result<(), StorageError> {
        self.folder.as_mut().map_or(Ok(()), |folder| folder.journal.rewrite(records))
    }
}

fn partitions_folder(topics: &TopicsFile) -> PathBuf {
    topics.folder().join("partitions")
}

fn topic_folder(topics: &TopicsFile, id: Uuid) -> PathBuf {
    partitions_folder(topics).join(id.simple().to_string())
}

/// A folder with files, but without a version, belongs to someone else.
fn check_owner(folder: &Path) -> Result<(), StorageError> {
    if folder.join("version").exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).map_err(StorageError::io("read", folder))? {
        let name = entry.map_err(StorageError::io("read", folder))?.file_name();
        // What a broker leaves that was killed while it made the folder.
        if name != "lock" && name != "version.new" {
            return Err(StorageError::NotADataFolder { path: folder.to_path_buf() });
        }
    }
    Ok(())
}

/// The lock of a data folder, held for this process.
#[derive(Debug)]
struct Lock {
    file: File,
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started holds a copy of the descriptor.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(path = %self.path.display(), %error, "the data folder could not be unlocked");
        }
    }
}

fn lock(folder: &Path) -> Result<Lock, StorageError> {
    let path = folder.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(StorageError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { file, path }),
        Err(TryLockError::WouldBlock) => Err(StorageError::InUse { path: folder.to_path_buf() }),
        Err(TryLockError::Error(error)) => Err(StorageError::io("lock", &path)(error)),
    }
}

fn check_version(folder: &Path) -> Result<(), StorageError> {
    let path = folder.join("version");
    match std::fs::read(&path) {
        Ok(found) if found == format!("{VERSION}\n").as_bytes() => Ok(()),
        Ok(found) => {
            // A version is short; more would be something else, and is not shown.
            let found = String::from_utf8_lossy(found.get(..found.len().min(20)).unwrap_or_default());
            let found = found.trim().escape_default().to_string();
            Err(StorageError::Version { path: folder.to_path_buf(), found, expected: VERSION })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let version = format!("{VERSION}\n");
            files::replace(&path, std::iter::once(version.as_bytes()), true).map(|_| ())
        }
        Err(error) => Err(StorageError::io("read", &path)(error)),
    }
}

/// Without its list of topics a folder would be a new one, and all that is in it would be removed.
fn check_topics(folder: &Path) -> Result<(), StorageError> {
    let topics = folder.join("topics");
    let used = ["journal", "partitions"].iter().any(|name| folder.join(name).exists());
    if used && !topics.exists() { Err(StorageError::damaged(&topics, 0, "it is missing")) } else { Ok(()) }
}

/// Removes what a broker leaves that is killed while it removes a topic.
fn remove_unknown(topics: &TopicsFile) -> Result<(), StorageError> {
    let folder = partitions_folder(topics);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StorageError::io("read", &folder)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(StorageError::io("read", &folder))?;
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| Uuid::try_parse(name).ok());
        if let Some(id) = id
            && !topics.topics.values().any(|topic| topic.id == id)
        {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_folder(folder: &Path) -> Result<(), StorageError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StorageError::io("remove", folder)(error)),
        _ => Ok(()),
    }
}
