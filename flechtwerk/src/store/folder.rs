//! The folder of a task's store: who may use it, and how it is removed.
//!
//! A folder is removed by renaming it first, which is atomic: a half removed database can't be met under its name.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::port::{StoreError, StoreId};

/// A task's folder, held for this process.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Beside the folder and not in it, so that it can be held while the folder is removed.
    lock: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started holds a copy of the descriptor.
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(folder = %self.path.display(), %error, "the state folder could not be unlocked");
        }
    }
}

impl Folder {
    pub(super) fn lock(state_dir: &Path, id: &StoreId) -> Result<Self, StoreError> {
        let application = &id.application_id;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let parent = state_dir.join(application);
        if application.is_empty() || application.starts_with('.') || !application.chars().all(plain) {
            let source = "the application id can't be the name of a folder, use letters, digits, '-', '_' and inner '.'";
            return Err(error("use", &parent, source));
        }
        fs::create_dir_all(&parent).map_err(|source| error("create", &parent, source))?;
        let path = parent.join(id.partition.to_string());
        let lock_path = parent.join(format!("{}.lock", id.partition));
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(|source| error("lock", &path, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError { in_use: true, ..error("open", &path, IN_USE) });
            }
            Err(TryLockError::Error(source)) => return Err(error("lock", &path, source)),
        }
        let folder = Self { path, lock };
        // What a removal that was cut short has left.
        folder.remove_trash()?;
        Ok(folder)
    }

    /// Removes whatever is there.
    pub(super) fn remove(&self) -> Result<(), StoreError> {
        self.remove_trash()?;
        match fs::rename(&self.path, self.trash()) {
            Ok(()) => self.remove_trash(),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(self.error("remove", source)),
        }
    }

    fn trash(&self) -> PathBuf {
        self.path.with_extension("trash")
    }

    fn remove_trash(&self) -> Result<(), StoreError> {
        let trash = self.trash();
        let removed = match fs::symlink_metadata(&trash) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&trash),
            Ok(_) => fs::remove_file(&trash),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(source),
        };
        removed.map_err(|source| error("remove", &trash, source))
    }

    pub(super) fn error(&self, verb: &str, source: impl Into<crate::BoxError>) -> StoreError {
        error(verb, &self.path, source)
    }
}

const IN_USE: &str = "it is in use, by another process or an earlier task of this one: give each process a state \
                      folder of its own, or stop the other one";

fn error(verb: &str, path: &Path, source: impl Into<crate::BoxError>) -> StoreError {
    let what = format!("can't {verb} the state folder {}", path.display());
    StoreError { what, in_use: false, source: source.into() }
}
