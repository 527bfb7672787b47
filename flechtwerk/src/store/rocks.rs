//! State on disk, in RocksDB: one database per task under `{state_dir}/{application_id}/{partition}`.
//!
//! Data and stamp share one column family, and so each flush and each entry of the write-ahead log: whatever a
//! kill leaves behind is the state right after some batch, with the stamp of that batch. Restored data bypasses
//! the log; the stamp follows only when all of it lies in files.
//!
//! A folder is removed by renaming it first, which is atomic: a half removed database can't be met under its name.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, InfoLogger, IteratorMode,
    LogLevel, Options, WriteBatch, WriteBufferManager, WriteOptions,
};

use crate::port::{Change, Store, StoreError, StoreFactory, StoreId, StoreSize};

/// The layout of a database; one of another layout is not reused.
const FORMAT: u32 = 1;
/// Keys of our own start with this byte, which is no kind of a changelog key (S2.7).
const RESERVED: u8 = 0xff;
/// Application id, partition and [`FORMAT`].
const IDENTITY: &[u8] = b"\xffidentity";
/// Name of the last transaction in the store.
const STAMP: &[u8] = b"\xffstamp";
const COLUMN_FAMILY: &str = "default";

/// Blocks of all tasks of the process, and the index and filter blocks too, so that the sum has a limit.
const BLOCK_CACHE: usize = 64 << 20;
/// Write buffers of all tasks of the process: beyond this, the largest is written out early.
const WRITE_BUFFERS: usize = 64 << 20;
/// Write buffer of one task.
const WRITE_BUFFER: usize = 8 << 20;
/// Log of one task, beyond which the write buffer it covers is written out.
const MAX_LOG: u64 = 32 << 20;

/// The stores of this process in one state folder. Memory and threads are shared among them.
pub(crate) struct RocksStores {
    state_dir: PathBuf,
    cache: Cache,
    write_buffers: WriteBufferManager,
}

impl RocksStores {
    pub(crate) fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            cache: Cache::new_lru_cache(BLOCK_CACHE),
            write_buffers: WriteBufferManager::new_write_buffer_manager(WRITE_BUFFERS, false),
        }
    }

    fn options(&self) -> Options {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&self.cache);
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
        blocks.set_bloom_filter(10.0, false);
        blocks.set_format_version(5);

        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        options.set_write_buffer_manager(&self.write_buffers);
        options.set_write_buffer_size(WRITE_BUFFER);
        options.set_max_total_wal_size(MAX_LOG);
        // Set always: a build of RocksDB may have more codecs than ours, and another default.
        options.set_compression_type(DBCompressionType::Lz4);
        // The threads are those of the process, whatever the number of databases.
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        options.set_max_background_jobs(cores.clamp(2, 4) as i32);
        options.set_stats_dump_period_sec(0);
        options.set_info_logger(InfoLogger::new_callback_logger(LogLevel::Warn, |level, line| match level {
            LogLevel::Error | LogLevel::Fatal => tracing::error!(target: "rocksdb", "{}", line.trim_end()),
            _ => tracing::warn!(target: "rocksdb", "{}", line.trim_end()),
        }));
        options
    }
}

impl StoreFactory for RocksStores {
    fn open(&self, id: &StoreId, wiped: bool) -> Result<Arc<dyn Store>, StoreError> {
        let folder = Folder::lock(&self.state_dir, id)?;
        if wiped {
            folder.remove()?;
        }
        let options = self.options();
        let mut db = folder.open(&options)?;
        let identity = identity(id);
        let found = db.get(IDENTITY).map_err(|error| folder.error("read", error))?;
        if found.as_deref() != Some(identity.as_bytes()) {
            if found.is_some() {
                tracing::warn!(folder = %folder.path.display(), "the state folder is of another task or format, it is emptied");
            }
            drop(db);
            folder.remove()?;
            db = folder.create(&options, &identity)?;
        }
        let stamped = db.get_pinned(STAMP).map_err(|error| folder.error("read", error))?.is_some();
        Ok(Arc::new(RocksStore {
            stamped: AtomicBool::new(stamped),
            db: RwLock::new(Some(db)),
            options,
            identity,
            folder,
        }))
    }
}

fn identity(id: &StoreId) -> String {
    format!("{FORMAT} {} {}", id.application_id, id.partition)
}

/// A task's folder, held for this process.
struct Folder {
    path: PathBuf,
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
    fn lock(state_dir: &Path, id: &StoreId) -> Result<Self, StoreError> {
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

    fn open(&self, options: &Options) -> Result<DB, StoreError> {
        let column_family = ColumnFamilyDescriptor::new(COLUMN_FAMILY, options.clone());
        DB::open_cf_descriptors(options, &self.path, [column_family]).map_err(|source| {
            // A tool of RocksDB's own takes this lock and not ours.
            let in_use = source.kind() == rocksdb::ErrorKind::IOError && source.as_ref().contains("lock");
            StoreError { in_use, ..self.error("open", source) }
        })
    }

    /// Opens a database where there is none, and says whose it is.
    fn create(&self, options: &Options, identity: &str) -> Result<DB, StoreError> {
        let db = self.open(options)?;
        db.put_opt(IDENTITY, identity, &synced()).map_err(|source| self.error("write", source))?;
        Ok(db)
    }

    /// Removes whatever is there.
    fn remove(&self) -> Result<(), StoreError> {
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

    fn error(&self, verb: &str, source: impl Into<crate::BoxError>) -> StoreError {
        error(verb, &self.path, source)
    }
}

const IN_USE: &str = "it is in use, by another process or an earlier task of this one: give each process a state \
                      folder of its own, or stop the other one";

fn error(verb: &str, path: &Path, source: impl Into<crate::BoxError>) -> StoreError {
    let what = format!("can't {verb} the state folder {}", path.display());
    StoreError { what, in_use: false, source: source.into() }
}

/// Survives a crash of the machine; for the few writes that later ones rest on.
fn synced() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(true);
    options
}

/// Not in the log; lost by a kill unless flushed.
fn unlogged() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options
}

/// One task's database.
struct RocksStore {
    /// `None` after a wipe that failed half way. Before `folder`: it closes before the lock is let go.
    db: RwLock<Option<DB>>,
    /// There is a stamp, or may be.
    stamped: AtomicBool,
    options: Options,
    identity: String,
    folder: Folder,
}

/// A guard that knows that the database is open.
struct Open<'a>(RwLockReadGuard<'a, Option<DB>>);

impl std::ops::Deref for Open<'_> {
    type Target = DB;

    fn deref(&self) -> &DB {
        self.0.as_ref().expect("made only of an open database")
    }
}

impl RocksStore {
    fn db(&self) -> Result<Open<'_>, StoreError> {
        let guard = self.db.read().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() {
            return Err(self.folder.error("use", "it was to be wiped and could not be opened again"));
        }
        Ok(Open(guard))
    }

    fn read_error(&self, source: rocksdb::Error) -> StoreError {
        self.folder.error("read", source)
    }

    fn write_error(&self, source: rocksdb::Error) -> StoreError {
        self.folder.error("write", source)
    }

    fn batch(&self, changes: &[Change]) -> Result<WriteBatch, StoreError> {
        let size =
            changes.iter().map(|change| change.key.len() + change.value.as_ref().map_or(0, Bytes::len) + 12);
        let mut batch = WriteBatch::with_capacity_bytes(size.sum::<usize>() + 128);
        for Change { key, value } in changes {
            if key.first() == Some(&RESERVED) {
                return Err(self.folder.error("write", "a key starts with the reserved byte 255"));
            }
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        Ok(batch)
    }
}

type Entry = (Box<[u8]>, Box<[u8]>);

/// Entries in key order, without our own: those come last.
fn entries(db: &DB) -> impl Iterator<Item = Result<Entry, rocksdb::Error>> {
    db.iterator(IteratorMode::Start).take_while(|entry| !matches!(entry, Ok((key, _)) if key.starts_with(&[RESERVED])))
}

impl Store for RocksStore {
    fn stamp(&self) -> Result<Option<String>, StoreError> {
        let stamp = self.db()?.get(STAMP).map_err(|source| self.read_error(source))?;
        stamp
            .map(|stamp| String::from_utf8(stamp).map_err(|source| self.folder.error("read", source)))
            .transpose()
    }

    fn get_many(&self, keys: &[&[u8]], found: &mut Vec<Option<Bytes>>) -> Result<(), StoreError> {
        let db = self.db()?;
        let Some(column_family) = db.cf_handle(COLUMN_FAMILY) else {
            return Err(self.folder.error("read", "the database has lost its column family"));
        };
        let mut values = Vec::new();
        let mut ends = Vec::with_capacity(keys.len());
        for value in db.batched_multi_get_cf(column_family, keys.iter().copied(), false) {
            ends.push(value.map_err(|source| self.read_error(source))?.map(|value| {
                values.extend_from_slice(&value);
                values.len()
            }));
        }
        super::slice_up(values, &ends, found);
        Ok(())
    }

    fn apply(&self, changes: &[Change], stamp: &str) -> Result<(), StoreError> {
        let mut batch = self.batch(changes)?;
        batch.put(STAMP, stamp);
        self.stamped.store(true, Ordering::Release);
        self.db()?.write(batch).map_err(|source| self.write_error(source))
    }

    fn restore(&self, changes: &[Change]) -> Result<(), StoreError> {
        let db = self.db()?;
        if self.stamped.swap(false, Ordering::AcqRel) {
            db.delete_opt(STAMP, &synced()).map_err(|source| self.write_error(source))?;
        }
        db.write_opt(self.batch(changes)?, &unlogged()).map_err(|source| self.write_error(source))
    }

    fn restored(&self, stamp: &str) -> Result<(), StoreError> {
        let db = self.db()?;
        // What was restored is in no log: it must lie in files before a log says that it is there.
        db.flush().map_err(|source| self.write_error(source))?;
        self.stamped.store(true, Ordering::Release);
        db.put_opt(STAMP, stamp, &synced()).map_err(|source| self.write_error(source))
    }

    fn wipe(&self) -> Result<(), StoreError> {
        let mut guard = self.db.write().unwrap_or_else(PoisonError::into_inner);
        // Closing also writes; that it is about to vanish makes no difference, and the rename takes all at once.
        drop(guard.take());
        self.folder.remove()?;
        *guard = Some(self.folder.create(&self.options, &self.identity)?);
        self.stamped.store(false, Ordering::Release);
        Ok(())
    }

    fn is_empty(&self) -> Result<bool, StoreError> {
        let db = self.db()?;
        let first = entries(&db).next().transpose().map_err(|source| self.read_error(source))?;
        Ok(first.is_none())
    }

    fn size(&self) -> StoreSize {
        let Ok(db) = self.db() else { return StoreSize::default() };
        let property = |name: &str| db.property_int_value(name).ok().flatten().unwrap_or(0);
        let own = 1 + u64::from(self.stamped.load(Ordering::Acquire));
        StoreSize {
            bytes: property("rocksdb.total-sst-files-size") + property("rocksdb.cur-size-all-mem-tables"),
            entries: property("rocksdb.estimate-num-keys").saturating_sub(own),
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let db = self.db()?;
        for entry in entries(&db) {
            let (key, value) = entry.map_err(|source| self.read_error(source))?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.db()?.flush().map_err(|source| self.write_error(source))
    }
}

#[cfg(test)]
#[path = "rocks_tests.rs"]
mod tests;
