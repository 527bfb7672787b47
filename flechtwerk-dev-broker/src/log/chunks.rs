//! The bytes of a log in memory, and where each batch lies in them.
//!
//! Batches are copied behind each other into chunks of a megabyte. A full chunk is never written again, so that a read
//! answers with a slice of it; only reads of the newest chunk copy. An index entry per batch is all there is besides.

use std::collections::VecDeque;

use bytes::Bytes;

use super::batch::BatchHeader;

/// A chunk of this size is full.
const CHUNK: usize = 1024 * 1024;
/// A read that has this much in one chunk doesn't go on into the next, since that would copy.
const ENOUGH: usize = 64 * 1024;

/// Where a batch lies in its chunk, and what is asked often about it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    base_offset: i64,
    max_timestamp: i64,
    last_offset_delta: i32,
    position: u32,
    length: u32,
}

impl Entry {
    fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    fn start(&self) -> usize {
        self.position as usize
    }

    fn end(&self) -> usize {
        self.start() + self.length as usize
    }
}

#[derive(Debug)]
enum Data {
    Open(Vec<u8>),
    Full(Bytes),
}

impl Data {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Open(bytes) => bytes,
            Self::Full(bytes) => bytes,
        }
    }

    fn slice(&self, start: usize, end: usize) -> Bytes {
        match self {
            Self::Open(bytes) => bytes.get(start..end).map_or_else(Bytes::new, Bytes::copy_from_slice),
            Self::Full(bytes) if start <= end && end <= bytes.len() => bytes.slice(start..end),
            Self::Full(_) => Bytes::new(),
        }
    }
}

#[derive(Debug)]
struct Chunk {
    data: Data,
    entries: Vec<Entry>,
    /// Entries before this one have been deleted.
    first: usize,
}

impl Chunk {
    fn live(&self) -> &[Entry] {
        self.entries.get(self.first..).unwrap_or_default()
    }

    fn last_offset(&self) -> i64 {
        self.live().last().map_or(i64::MIN, Entry::last_offset)
    }
}

/// A batch in the log: what the index knows, and its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredBatch<'a> {
    /// The offset of its first record.
    pub(crate) base_offset: i64,
    /// The offset of its last record.
    pub(crate) last_offset: i64,
    /// The largest timestamp in it.
    pub(crate) max_timestamp: i64,
    /// All of it.
    pub(crate) bytes: &'a [u8],
}

/// The batches of a log, by offset.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    chunks: VecDeque<Chunk>,
    size: usize,
}

impl Chunks {
    /// The bytes of all batches.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Adds a batch behind all others.
    pub(crate) fn push(&mut self, header: &BatchHeader, batch: &[u8]) {
        let open = matches!(self.chunks.back(), Some(Chunk { data: Data::Open(_), .. }));
        if !open {
            self.chunks.push_back(Chunk { data: Data::Open(Vec::new()), entries: Vec::new(), first: 0 });
        }
        let Some(chunk) = self.chunks.back_mut() else { return };
        let Data::Open(bytes) = &mut chunk.data else { return };
        // A chunk that is not full is below a megabyte, and the length of a batch is an i32: both fit.
        let position = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let length = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(batch);
        chunk.entries.push(Entry {
            base_offset: header.base_offset,
            max_timestamp: header.max_timestamp,
            last_offset_delta: header.last_offset_delta,
            position,
            length,
        });
        self.size += batch.len();
        if bytes.len() >= CHUNK {
            let full = std::mem::take(bytes).into_boxed_slice();
            chunk.data = Data::Full(Bytes::from(full));
            chunk.entries.shrink_to_fit();
        }
    }

    /// Removes the batches that lie before an offset with all their records.
    pub(crate) fn remove_before(&mut self, offset: i64) {
        while let Some(chunk) = self.chunks.front_mut() {
            let dead = chunk.live().partition_point(|entry| entry.last_offset() < offset);
            let bytes: usize = chunk.live().iter().take(dead).map(|entry| entry.length as usize).sum();
            self.size = self.size.saturating_sub(bytes);
            chunk.first += dead;
            if !chunk.live().is_empty() {
                break;
            }
            self.chunks.pop_front();
        }
    }

    /// All batches whose last offset is `from` or more, in order.
    pub(crate) fn batches_from(&self, from: i64) -> impl Iterator<Item = StoredBatch<'_>> {
        let first = self.chunk_of(from);
        self.chunks.iter().skip(first).flat_map(move |chunk| {
            let skip = chunk.live().partition_point(|entry| entry.last_offset() < from);
            let bytes = chunk.data.bytes();
            chunk.live().iter().skip(skip).map(move |entry| StoredBatch {
                base_offset: entry.base_offset,
                last_offset: entry.last_offset(),
                max_timestamp: entry.max_timestamp,
                bytes: bytes.get(entry.start()..entry.end()).unwrap_or_default(),
            })
        })
    }

    /// All batches.
    pub(crate) fn batches(&self) -> impl Iterator<Item = StoredBatch<'_>> {
        self.batches_from(i64::MIN)
    }

    /// The base offset of the last batch.
    pub(crate) fn last_base_offset(&self) -> Option<i64> {
        self.chunks.back().and_then(|chunk| chunk.live().last()).map(|entry| entry.base_offset)
    }

    /// Whole batches from `from` on that end before `until`, with at most `max_bytes` (the first one whatever its
    /// size, if asked so), and the offset behind the last of them.
    pub(crate) fn read(&self, from: i64, until: i64, max_bytes: usize, min_one_batch: bool) -> (Bytes, i64) {
        let mut parts: Vec<Bytes> = Vec::new();
        let (mut total, mut next) = (0_usize, from);
        for (index, chunk) in self.chunks.iter().enumerate().skip(self.chunk_of(from)) {
            let live = chunk.live();
            let start = live.partition_point(|entry| entry.last_offset() < from);
            let Some(first) = live.get(start) else { break };
            let limit = first.start().saturating_add(max_bytes.saturating_sub(total));
            let fits = |entry: &Entry| entry.end() <= limit && entry.last_offset() < until;
            let mut end = live.partition_point(fits).max(start);
            if end == start && total == 0 && min_one_batch && first.last_offset() < until {
                end = start + 1;
            }
            let Some(last) = live.get(start..end).and_then(<[Entry]>::last) else { break };
            parts.push(chunk.data.slice(first.start(), last.end()));
            total += last.end() - first.start();
            next = last.last_offset().saturating_add(1);
            let more = end == live.len() && index + 1 < self.chunks.len();
            if !more || total >= ENOUGH {
                break;
            }
        }
        let bytes = match parts.len() {
            0 => Bytes::new(),
            1 => parts.pop().unwrap_or_default(),
            _ => parts.concat().into(),
        };
        (bytes, next)
    }

    /// The bytes of the batches from `from` on that end before `until`.
    pub(crate) fn bytes_between(&self, from: i64, until: i64) -> usize {
        let chunks = self.chunks.iter().skip(self.chunk_of(from));
        let of_chunk = |chunk: &Chunk| {
            let live = chunk.live();
            let start = live.partition_point(|entry| entry.last_offset() < from);
            let end = live.partition_point(|entry| entry.last_offset() < until);
            match (live.get(start), end.checked_sub(1).and_then(|last| live.get(last))) {
                (Some(first), Some(last)) => last.end().saturating_sub(first.start()),
                _ => 0,
            }
        };
        chunks.map(of_chunk).sum()
    }

    fn chunk_of(&self, from: i64) -> usize {
        self.chunks.partition_point(|chunk| chunk.last_offset() < from)
    }
}
