//! State on disk, in RocksDB: one database per task under `{state_dir}/{application_id}/{partition}`.
//!
//! Data and stamp share one column family, and so each flush and each entry of the write-ahead log: whatever a
//! kill leaves behind is the state right after some batch, with the stamp of that batch. Restored data bypasses
//! the log and is in files that are synced; the stamp follows only when all of it is there.
//!
//! The log is on, though not synced at every batch. It costs about a tenth of the CPU time of applying and looking
//! up (0.2 to 0.5 s per million changes), and it is why a process that was killed finds its state current and need
//! not restore it. If the machine crashes, the end of the log may be missing: the stamp is then an older one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, InfoLogger, IteratorMode,
    LogLevel, Options, WriteBatch, WriteBufferManager, WriteOptions,
};

use super::folder::{Folder, Lock};
use super::index;
use super::ingest::Pending;
use crate::compact::CompactBytes;
use crate::format::ChangelogRecord;
use crate::port::{Store, StoreError, StoreFactory, StoreId, StoreSize};
use crate::timers::{Clock, Summary};

/// The layout of a database; one of another layout is not reused.
const FORMAT: u32 = 1;
/// Keys of our own start with this byte or a larger one; none is a kind of a changelog key (S2.7).
const RESERVED: u8 = index::PREFIX;
/// Application id, partition and [`FORMAT`].
const IDENTITY: &[u8] = b"\xffidentity";
/// Name of the last transaction in the store.
const STAMP: &[u8] = b"\xffstamp";
pub(super) const COLUMN_FAMILY: &str = "default";

/// Blocks of all tasks of the process, and the index and filter blocks too, so that the sum has a limit.
const BLOCK_CACHE: usize = 64 << 20;
/// Write buffers of all tasks of the process: beyond this, the largest is written out early.
const WRITE_BUFFERS: usize = 64 << 20;
/// Write buffer of one task.
const WRITE_BUFFER: usize = 8 << 20;
/// Log of one task, beyond which the write buffer it covers is written out.
const MAX_LOG: u64 = 32 << 20;

/// What it warns of with each file that a restore hands over, which is as it should be: the file does not say what files of a database's
/// own say.
const HARMLESS: [&str; 2] = ["Tail prefetch size", "SST file opened without unique ID"];

/// The stores of this process in one state folder. Memory and threads are shared among them.
pub(crate) struct RocksStores {
    state_dir: PathBuf,
    /// The stages' folders that this process has taken.
    held: Mutex<Vec<Lock>>,
    cache: Cache,
    write_buffers: WriteBufferManager,
}

impl RocksStores {
    pub(crate) fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            held: Mutex::default(),
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
            LogLevel::Warn if HARMLESS.iter().any(|harmless| line.contains(harmless)) => {
                tracing::debug!(target: "rocksdb", "{}", line.trim_end());
            }
            LogLevel::Warn => tracing::warn!(target: "rocksdb", "{}", line.trim_end()),
            // Hundreds of lines about its options at every open come whatever level was asked for.
            _ => tracing::debug!(target: "rocksdb", "{}", line.trim_end()),
        }));
        options
    }
}

impl StoreFactory for RocksStores {
    fn hold(&self, application_id: &str) -> Result<(), StoreError> {
        let lock = Lock::of_stage(&self.state_dir, application_id)?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(lock);
        Ok(())
    }

    fn open(&self, id: &StoreId, wiped: bool) -> Result<Arc<dyn Store>, StoreError> {
        let folder = Folder::lock(&self.state_dir, id)?;
        if wiped {
            folder.remove()?;
        }
        let options = self.options();
        let identity = identity(id);
        let mut db = open(&folder, &options)?;
        let found = db.get(IDENTITY).map_err(|error| folder.error("read", error))?;
        if found.as_deref() != Some(identity.as_bytes()) {
            if !is_new(&db) {
                tracing::warn!(folder = %folder.path.display(), "the state folder is of another task or format, it is emptied");
                drop(db);
                folder.remove()?;
                db = open(&folder, &options)?;
            }
            put_identity(&folder, &db, &identity)?;
        }
        let stamped = db.get_pinned(STAMP).map_err(|error| folder.error("read", error))?.is_some();
        let timers = index::count(&db).map_err(|error| folder.error("read", error))?;
        Ok(Arc::new(RocksStore {
            db: RwLock::new(Some(db)),
            pending: Mutex::default(),
            stamped: AtomicBool::new(stamped),
            timers: AtomicU64::new(timers),
            options,
            identity,
            folder,
        }))
    }
}

fn identity(id: &StoreId) -> String {
    format!("{FORMAT} {} {}", id.application_id, id.partition)
}

/// Opens the database, or creates it.
fn open(folder: &Folder, options: &Options) -> Result<DB, StoreError> {
    let column_family = ColumnFamilyDescriptor::new(COLUMN_FAMILY, options.clone());
    DB::open_cf_descriptors(options, &folder.path, [column_family]).map_err(|source| {
        // A tool of RocksDB's own takes this lock and not ours.
        StoreError { in_use: is_locked(source.as_ref()), ..folder.error("open", source) }
    })
}

/// True if it is RocksDB's lock that can't be taken. Only how the error begins says so: behind that stands the path, which may hold
/// any word.
fn is_locked(error: &str) -> bool {
    let of_lock = ["IO error: While lock file: ", "IO error: lock hold by current process, "];
    of_lock.iter().any(|beginning| error.starts_with(beginning))
}

/// True if nothing was ever written.
fn is_new(db: &DB) -> bool {
    db.latest_sequence_number() == 0
}

fn put_identity(folder: &Folder, db: &DB, identity: &str) -> Result<(), StoreError> {
    db.put_opt(IDENTITY, identity, &synced()).map_err(|source| folder.error("write", source))
}

/// Survives a crash of the machine; for the few writes that others rest on.
fn synced() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(true);
    options
}

/// One task's database.
struct RocksStore {
    /// `None` after a wipe that failed half way. Before `folder`: it closes before the lock is let go.
    db: RwLock<Option<DB>>,
    pending: Mutex<Pending>,
    /// There is a stamp, or may be.
    stamped: AtomicBool,
    /// Pending timers.
    timers: AtomicU64,
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
    /// The database, as the last batch left it.
    fn raw(&self) -> Result<Open<'_>, StoreError> {
        let guard = self.db.read().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() {
            return Err(self.folder.error("use", "it was to be wiped and could not be opened again"));
        }
        Ok(Open(guard))
    }

    /// The database with all that was restored.
    fn db(&self) -> Result<Open<'_>, StoreError> {
        let db = self.raw()?;
        let mut pending = self.pending();
        if !pending.is_empty() {
            self.write_pending(&db, &mut pending)?;
        }
        Ok(db)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_pending(&self, db: &DB, pending: &mut Pending) -> Result<(), StoreError> {
        pending.write(db, &self.options, &self.folder.path).map_err(|source| self.write_error(source))
    }

    fn read_error(&self, source: rocksdb::Error) -> StoreError {
        self.folder.error("read", source)
    }

    fn write_error(&self, source: rocksdb::Error) -> StoreError {
        self.folder.error("write", source)
    }

    fn index_error(&self, error: index::Error) -> StoreError {
        self.folder.error("use the timers in", error)
    }

    fn check_keys(&self, changes: &[ChangelogRecord]) -> Result<(), StoreError> {
        match changes.iter().any(|change| change.key.first() >= Some(&RESERVED)) {
            true => Err(self.folder.error("write", "a key starts with a reserved byte, 254 or 255")),
            false => Ok(()),
        }
    }

    /// One batch with its stamp; `before` as in [`Store::apply_over`], where it is known.
    fn write(
        &self,
        changes: &[ChangelogRecord],
        before: Option<&[Summary]>,
        stamp: &str,
    ) -> Result<(), StoreError> {
        self.check_keys(changes)?;
        let size = changes.iter().map(|ChangelogRecord { key, value }| {
            key.len() + value.as_ref().map_or(0, |value| value.len()) + 12
        });
        let mut batch = WriteBatch::with_capacity_bytes(size.sum::<usize>() + 128);
        for at in in_key_order(changes.len(), |at| &changes[at].key) {
            let ChangelogRecord { key, value } = &changes[at];
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        batch.put(STAMP, stamp);
        let db = self.db()?;
        let count = self.timers.load(Ordering::Acquire);
        let count = index::follow(&db, changes, before, count, &mut batch)
            .map_err(|error| self.index_error(error))?;
        self.stamped.store(true, Ordering::Release);
        db.write(batch).map_err(|source| self.write_error(source))?;
        self.timers.store(count, Ordering::Release);
        Ok(())
    }
}

type Entry = (Box<[u8]>, Box<[u8]>);

/// Entries in key order, without our own: those come last.
fn entries(db: &DB) -> impl Iterator<Item = Result<Entry, rocksdb::Error>> {
    db.iterator(IteratorMode::Start)
        .take_while(|entry| !matches!(entry, Ok((key, _)) if key.first() >= Some(&RESERVED)))
}

/// The numbers below `len` in the order of their keys, equal keys in their own order. Neighbours in the database
/// one after the other: that takes four tenths off the CPU time of looking up and of applying.
fn in_key_order<'a>(len: usize, key: impl Fn(usize) -> &'a [u8]) -> Vec<usize> {
    let mut order: Vec<_> = (0..len).collect();
    order.sort_by(|a, b| key(*a).cmp(key(*b)));
    order
}

impl Store for RocksStore {
    fn stamp(&self) -> Result<Option<String>, StoreError> {
        let stamp = self.raw()?.get(STAMP).map_err(|source| self.read_error(source))?;
        stamp
            .map(|stamp| String::from_utf8(stamp).map_err(|source| self.folder.error("read", source)))
            .transpose()
    }

    fn get_many(&self, keys: &[&[u8]], found: &mut Vec<Option<CompactBytes>>) -> Result<(), StoreError> {
        let db = self.db()?;
        let column_family = db.cf_handle(COLUMN_FAMILY);
        let column_family =
            column_family.ok_or_else(|| self.folder.error("read", "the database lost its column family"))?;
        let order = in_key_order(keys.len(), |at| keys[at]);
        let from = found.len();
        found.resize(from + keys.len(), None);
        let looked_up = db.batched_multi_get_cf(column_family, order.iter().map(|at| keys[*at]), true);
        for (at, value) in order.into_iter().zip(looked_up) {
            if let Some(value) = value.map_err(|source| self.read_error(source))? {
                found[from + at] = Some(CompactBytes::from(&value[..]));
            }
        }
        Ok(())
    }

    fn apply(&self, changes: &[ChangelogRecord], stamp: &str) -> Result<(), StoreError> {
        self.write(changes, None, stamp)
    }

    fn apply_over(
        &self,
        changes: &[ChangelogRecord],
        timers: &[Summary],
        stamp: &str,
    ) -> Result<(), StoreError> {
        self.write(changes, Some(timers), stamp)
    }

    fn restore(&self, changes: &[ChangelogRecord]) -> Result<(), StoreError> {
        self.check_keys(changes)?;
        let db = self.raw()?;
        if self.stamped.swap(false, Ordering::AcqRel) {
            db.delete_opt(STAMP, &synced()).map_err(|source| self.write_error(source))?;
        }
        let mut pending = self.pending();
        if pending.add(changes) {
            self.write_pending(&db, &mut pending)?;
        }
        Ok(())
    }

    fn restored(&self, stamp: Option<&str>) -> Result<(), StoreError> {
        let db = self.db()?;
        let timers = index::build(&db).map_err(|error| self.index_error(error))?;
        self.timers.store(timers, Ordering::Release);
        let Some(stamp) = stamp else { return Ok(()) };
        self.stamped.store(true, Ordering::Release);
        db.put_opt(STAMP, stamp, &synced()).map_err(|source| self.write_error(source))
    }

    fn due(
        &self,
        clock: Clock,
        from: i64,
        visit: &mut dyn FnMut(i64, &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        index::visit(&*self.db()?, clock, from, visit).map_err(|source| self.read_error(source))
    }

    fn wipe(&self) -> Result<(), StoreError> {
        let mut guard = self.db.write().unwrap_or_else(PoisonError::into_inner);
        // Closing also writes; that it is about to vanish makes no difference, and the rename takes all at once.
        drop(guard.take());
        *self.pending() = Pending::default();
        self.folder.remove()?;
        self.stamped.store(false, Ordering::Release);
        self.timers.store(0, Ordering::Release);
        let db = open(&self.folder, &self.options)?;
        put_identity(&self.folder, &db, &self.identity)?;
        *guard = Some(db);
        Ok(())
    }

    fn is_empty(&self) -> Result<bool, StoreError> {
        let db = self.db()?;
        let first = entries(&db).next().transpose().map_err(|source| self.read_error(source))?;
        Ok(first.is_none())
    }

    fn size(&self) -> StoreSize {
        let Ok(db) = self.raw() else { return StoreSize::default() };
        let property = |name: &str| db.property_int_value(name).ok().flatten().unwrap_or(0);
        let own = 1 + u64::from(self.stamped.load(Ordering::Acquire));
        StoreSize {
            bytes: property("rocksdb.total-sst-files-size") + property("rocksdb.cur-size-all-mem-tables"),
            entries: property("rocksdb.estimate-num-keys").saturating_sub(own),
            timers: self.timers.load(Ordering::Acquire),
        }
    }

    #[cfg(test)]
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
