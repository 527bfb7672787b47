//! Why a data folder can't be used.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// The data folder can't be used or written.
#[derive(Debug, Error)]
pub enum StorageError {
    /// The operating system refused.
    #[error("can't {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Another broker has the folder open.
    #[error("data folder {} is in use by another broker: stop it or choose another folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The folder was written by another version of the broker.
    #[error("data folder {} has format {found}, this broker reads {expected}: use the broker that wrote it, or an empty folder", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// The format found.
        found: String,
        /// The format this broker writes.
        expected: u32,
    },
    /// The folder holds files that are not a broker's.
    #[error("{} is not empty and not a broker's data folder: choose an empty or a new folder", path.display())]
    NotADataFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A file is damaged somewhere else than at its cut-off end.
    #[error("{} is damaged at byte {position}: {reason}; restore the file or delete the data folder", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        position: u64,
        /// What is wrong there.
        reason: String,
    },
    /// An earlier write failed, so that memory and file would part.
    #[error("{} takes no more writes after a failed one: restart the broker", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
    },
}

impl StorageError {
    /// For `map_err`: the operating system's error with what was tried, and where.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_path_buf(), source }
    }

    pub(crate) fn damaged(path: &Path, position: u64, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), position, reason: reason.into() }
    }
}
