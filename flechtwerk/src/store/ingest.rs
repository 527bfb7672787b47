//! Restored changelog records on their way into the database, as sorted files that it takes in as they are: half
//! the CPU time of writing them through its write buffers (measured with a million keys).

use std::path::Path;

use rocksdb::{DB, IngestExternalFileOptions, Options, SstFileWriter};

use crate::compact::CompactBytes;
use crate::format::ChangelogRecord;

/// What is gathered before it becomes a file, the entries' own overhead included. Larger files need less
/// merging later; this is taken once per task that restores.
const FILE: usize = 16 << 20;
/// The file's name until the database has taken it; no name of RocksDB's own.
const NAME: &str = "restore.sst";

/// Records that are not in the database yet, in changelog order.
#[derive(Default)]
pub(super) struct Pending {
    changes: Vec<(CompactBytes, Option<CompactBytes>)>,
    bytes: usize,
}

impl Pending {
    /// Adds records; true if it is time to [`write`](Self::write) them.
    pub(super) fn add(&mut self, changes: &[ChangelogRecord]) -> bool {
        for ChangelogRecord { key, value } in changes {
            self.bytes += size_of::<(CompactBytes, Option<CompactBytes>)>()
                + key.len()
                + value.as_ref().map_or(0, |value| value.len());
            self.changes.push((key.clone(), value.clone()));
        }
        self.bytes >= FILE
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Moves what was gathered into the database.
    pub(super) fn write(&mut self, db: &DB, options: &Options, folder: &Path) -> Result<(), rocksdb::Error> {
        self.bytes = 0;
        let mut changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            return Ok(());
        }
        // Stable: of several records with one key the last is the last.
        changes.sort_by(|a, b| a.0.cmp(&b.0));
        let path = folder.join(NAME);
        let mut file = SstFileWriter::create(options);
        file.open(&path)?;
        let mut rest = changes.iter().peekable();
        while let Some((key, value)) = rest.next() {
            if rest.peek().is_some_and(|(next, _)| next == key) {
                continue;
            }
            match value {
                Some(value) => file.put(key, value)?,
                // Needed: an earlier file may have the key.
                None => file.delete(key)?,
            }
        }
        file.finish()?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        db.ingest_external_file_opts(&options, vec![path])
    }
}
