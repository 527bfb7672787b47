//! The folder of a task's store: who may use it, and how it is removed.
//!
//! A folder is removed by renaming it first, which is atomic: a half removed database can't be met under its name.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::port::{StoreError, StoreId};

/// A lock file, held for this process.
pub(super) struct Lock {
    path: PathBuf,
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started holds a copy of the descriptor.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(folder = %self.path.display(), %error, "the state folder could not be unlocked");
        }
    }
}

impl Lock {
    /// Takes the folder of a stage.
    pub(super) fn of_stage(state_dir: &Path, application_id: &str) -> Result<Self, StoreError> {
        let folder = stage_folder(state_dir, application_id)?;
        Self::take(&folder, &folder.join("stage.lock"))
    }

    /// Locks `file` on behalf of `path`.
    fn take(path: &Path, file: &Path) -> Result<Self, StoreError> {
        let lock = File::options().create(true).truncate(false).write(true).open(file);
        let lock = lock.map_err(|source| error("lock", path, source))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), file: lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError { in_use: true, ..error("open", path, IN_USE) }),
            Err(TryLockError::Error(source)) => Err(error("lock", path, source)),
        }
    }
}

/// The folder of a stage, made where there is none.
fn stage_folder(state_dir: &Path, application_id: &str) -> Result<PathBuf, StoreError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let folder = state_dir.join(application_id);
    if application_id.is_empty() || application_id.starts_with('.') || !application_id.chars().all(plain) {
        let source =
            "the application id can't be the name of a folder, use letters, digits, '-', '_' and inner '.'";
        return Err(error("use", &folder, source));
    }
    fs::create_dir_all(&folder).map_err(|source| error("create", &folder, source))?;
    Ok(folder)
}

/// A task's folder, held for this process.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Beside the folder and not in it, so that it can be held while the folder is removed.
    _lock: Lock,
}

impl Folder {
    pub(super) fn lock(state_dir: &Path, id: &StoreId) -> Result<Self, StoreError> {
        let parent = stage_folder(state_dir, &id.application_id)?;
        let path = parent.join(id.partition.to_string());
        let lock = Lock::take(&path, &parent.join(format!("{}.lock", id.partition)))?;
        let folder = Self { path, _lock: lock };
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

const IN_USE: &str = "it is in use by another process, or by a tool";

fn error(verb: &str, path: &Path, source: impl Into<crate::BoxError>) -> StoreError {
    let what = format!("can't {verb} the state folder {}", path.display());
    StoreError { what, in_use: false, source: source.into() }
}
