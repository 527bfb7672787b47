//! The local stores of tasks: in memory, and on disk with RocksDB.
//!
//! Either is only a cache of the changelog. What makes it trustworthy is the stamp: written together with the
//! data of the transaction that it names, gone before anything is removed, and put back only after everything
//! is there (S3.4, S4.8).

#[cfg(feature = "rocksdb")]
mod folder;
#[cfg(feature = "rocksdb")]
mod index;
#[cfg(feature = "rocksdb")]
mod ingest;
mod memory;
#[cfg(feature = "rocksdb")]
mod rocks;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod timers_suite;

pub(crate) use memory::MemoryStores;
#[cfg(feature = "rocksdb")]
pub(crate) use rocks::RocksStores;
