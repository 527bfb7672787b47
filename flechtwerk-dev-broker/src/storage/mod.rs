//! What a broker keeps over a restart: a data folder, or nothing at all.
//!
//! With a folder, a broker that was killed and started again is the same broker. The folder holds a lock file, a version
//! file, the topics (`topics`, rewritten by rename), one segment file per partition, and the coordinators' journal.

use std::path::Path;

use bytes::Bytes;
use uuid::Uuid;

pub use crate::log::StorageError;
use crate::log::{LogConfig, PartitionLog};

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
    cluster_id: String,
}

impl Storage {
    /// Nothing outlives the process.
    pub fn in_memory(cluster_id: String) -> Self {
        Self { cluster_id }
    }

    /// Opens a data folder, or makes one with this cluster id.
    ///
    /// Returns the journal's records since (and with) the last snapshot, for the coordinators to restore themselves.
    pub fn open(
        _folder: &Path,
        _options: StorageOptions,
        new_cluster_id: String,
    ) -> Result<(Self, Vec<Bytes>), StorageError> {
        Ok((Self { cluster_id: new_cluster_id }, Vec::new()))
    }

    /// The cluster id, the same over restarts.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// The topics that were put and not removed, by name.
    pub fn topics(&self) -> Vec<TopicMeta> {
        Vec::new()
    }

    /// Keeps a new topic, or the changed partitions and settings of a known one.
    pub fn put_topic(&mut self, _topic: TopicMeta) -> Result<(), StorageError> {
        Ok(())
    }

    /// Forgets a topic and removes its files. Drop its logs before.
    pub fn remove_topic(&mut self, _name: &str) -> Result<(), StorageError> {
        Ok(())
    }

    /// Opens the log of a partition with all that is in it; an empty one if it is new. Each log once.
    pub fn open_log(
        &self,
        _topic: &str,
        _id: Uuid,
        _partition: i32,
        config: LogConfig,
    ) -> Result<PartitionLog, StorageError> {
        Ok(PartitionLog::in_memory(config))
    }

    /// Appends coordinator records to the journal, together or not at all.
    pub fn append_journal(&mut self, _records: &[Bytes]) -> Result<(), StorageError> {
        Ok(())
    }

    /// The journal has grown so much that it should be rewritten by [`Self::rewrite_journal`].
    pub fn journal_wants_snapshot(&self) -> bool {
        false
    }

    /// Replaces the journal by these records, which restore the same state.
    pub fn rewrite_journal(&mut self, _records: &[Bytes]) -> Result<(), StorageError> {
        Ok(())
    }
}
