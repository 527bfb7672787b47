//! Tests of the data folder: what comes back after a restart, after a kill, and after damage.

mod folder;
mod segments;

use tempfile::TempDir;
use uuid::Uuid;

use super::{Storage, StorageError, StorageOptions};
use crate::log::{LogConfig, PartitionLog};

const TOPIC: Uuid = Uuid::from_u128(7);

fn open(folder: &TempDir) -> Result<Storage, StorageError> {
    Storage::open(folder.path(), StorageOptions::default(), "cluster".into()).map(|(storage, _)| storage)
}

fn open_log(storage: &Storage, config: &LogConfig) -> Result<PartitionLog, StorageError> {
    storage.open_log("topic", TOPIC, 0, config.clone())
}

fn damaged_at(error: StorageError) -> u64 {
    match error {
        StorageError::Damaged { position, .. } => position,
        other => panic!("{other}"),
    }
}
