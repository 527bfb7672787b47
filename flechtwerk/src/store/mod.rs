//! The local stores of tasks: in memory, and on disk with RocksDB.
//!
//! Either is only a cache of the changelog. What makes it trustworthy is the stamp: written together with the
//! data of the transaction that it names, gone before anything is removed, and put back only after everything
//! is there (S3.4, S4.8).

mod memory;
#[cfg(feature = "rocksdb")]
mod rocks;
#[cfg(test)]
mod suite;

use bytes::Bytes;

pub(crate) use memory::MemoryStores;
#[cfg(feature = "rocksdb")]
pub(crate) use rocks::RocksStores;

/// Appends one slice of `values` per entry of `ends`: from the end of the one before to its own; `None` for keys
/// that were not found.
fn slice_up(values: Vec<u8>, ends: &[Option<usize>], found: &mut Vec<Option<Bytes>>) {
    let values = Bytes::from(values);
    let mut start = 0;
    found.extend(ends.iter().map(|end| {
        end.map(|end| {
            let value = values.slice(start..end);
            start = end;
            value
        })
    }));
}
