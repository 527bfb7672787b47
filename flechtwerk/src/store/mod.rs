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

use std::ops::Range;

use bytes::Bytes;

pub(crate) use memory::MemoryStores;
#[cfg(feature = "rocksdb")]
pub(crate) use rocks::RocksStores;

/// Values that were looked up, in one buffer: one allocation a look-up instead of one a value.
struct Values {
    bytes: Vec<u8>,
    ranges: Vec<Option<Range<usize>>>,
}

impl Values {
    /// None of `count` found yet.
    fn new(count: usize) -> Self {
        Self { bytes: Vec::new(), ranges: vec![None; count] }
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ranges[at] = Some(start..self.bytes.len());
    }

    fn append_to(self, found: &mut Vec<Option<Bytes>>) {
        let bytes = Bytes::from(self.bytes);
        found.extend(self.ranges.into_iter().map(|range| range.map(|range| bytes.slice(range))));
    }
}
