//! Files as the data folder uses them: appended to, or replaced as a whole by rename.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::StorageError;

/// A file that is only ever appended to or replaced. It is opened with the first write, so that a partition without
/// writes holds no handle.
#[derive(Debug)]
pub(crate) struct AppendFile {
    path: PathBuf,
    handle: Option<File>,
    length: u64,
    fsync: bool,
    /// A write failed and could not be undone.
    failed: bool,
}

impl AppendFile {
    pub(crate) fn new(path: PathBuf, fsync: bool) -> Self {
        Self { path, handle: None, length: 0, fsync, failed: false }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// Says how long the file is, after it was read.
    pub(crate) fn set_len(&mut self, length: u64) {
        self.length = length;
    }

    /// Cuts the file off.
    pub(crate) fn truncate(&mut self, length: u64) -> Result<(), StorageError> {
        let (path, fsync) = (self.path.clone(), self.fsync);
        let handle = self.handle()?;
        handle.set_len(length).map_err(StorageError::io("cut off", &path))?;
        if fsync {
            handle.sync_data().map_err(StorageError::io("sync", &path))?;
        }
        self.length = length;
        Ok(())
    }

    /// Appends all of these bytes or, after an error, nothing.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        if self.failed {
            return Err(StorageError::Failed { path: self.path.clone() });
        }
        let (length, fsync) = (self.length, self.fsync);
        let handle = self.handle()?;
        let written = handle.write_all(bytes).and_then(|()| if fsync { handle.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            self.failed = handle.set_len(length).is_err();
            return Err(StorageError::io("write", &self.path)(error));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Replaces the whole file by these bytes, at once: after a kill it is the old one or the new one.
    pub(crate) fn replace_with(
        &mut self,
        parts: impl Iterator<Item = impl AsRef<[u8]>>,
    ) -> Result<(), StorageError> {
        self.length = replace(&self.path, parts, self.fsync)?;
        // The old handle belongs to the file that is gone.
        self.handle = None;
        self.failed = false;
        Ok(())
    }

    fn handle(&mut self) -> Result<&mut File, StorageError> {
        match &mut self.handle {
            Some(handle) => Ok(handle),
            empty => {
                if let Some(folder) = self.path.parent() {
                    std::fs::create_dir_all(folder).map_err(StorageError::io("create", folder))?;
                }
                let opened = OpenOptions::new().append(true).create(true).open(&self.path);
                Ok(empty.insert(opened.map_err(StorageError::io("open", &self.path))?))
            }
        }
    }
}

/// Writes a file under another name and renames it; returns its length.
pub(crate) fn replace(
    path: &Path,
    parts: impl Iterator<Item = impl AsRef<[u8]>>,
    fsync: bool,
) -> Result<u64, StorageError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(StorageError::io("create", folder))?;
    }
    let mut writer = BufWriter::new(File::create(&new).map_err(StorageError::io("create", &new))?);
    let mut length = 0;
    for part in parts {
        let part = part.as_ref();
        writer.write_all(part).map_err(StorageError::io("write", &new))?;
        length += part.len() as u64;
    }
    let file = writer.into_inner().map_err(|error| StorageError::io("write", &new)(error.into_error()))?;
    if fsync {
        file.sync_all().map_err(StorageError::io("sync", &new))?;
    }
    std::fs::rename(&new, path).map_err(StorageError::io("replace", path))?;
    if fsync && let Some(folder) = path.parent() {
        let folder_file = File::open(folder).map_err(StorageError::io("sync", folder))?;
        folder_file.sync_all().map_err(StorageError::io("sync", folder))?;
    }
    Ok(length)
}
