//! The header of a record batch (magic 2), and what the broker writes into a batch that it stores.
//!
//! Batches are stored as they come, so their format is read here and nowhere else. Base offset and leader epoch lie
//! outside of the CRC and are written in place.

use thiserror::Error;

/// The bytes before the records.
pub const HEADER_SIZE: usize = 61;
/// Base offset and length: the bytes that the length does not count.
pub(crate) const LENGTH_OVERHEAD: usize = 12;
/// No producer id: the producer is not idempotent.
pub const NO_PRODUCER_ID: i64 = -1;

const LEADER_EPOCH_AT: usize = 12;
const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const MAX_TIMESTAMP_AT: usize = 35;

const COMPRESSION_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
const DELETE_HORIZON: i16 = 0x40;

/// Why bytes are no record batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BatchError {
    /// The bytes end before the batch does.
    #[error("it ends too early")]
    Incomplete,
    /// Something in it contradicts itself.
    #[error("{0}")]
    Corrupt(&'static str),
    /// It has another format.
    #[error("it has magic {0}")]
    Magic(i8),
    /// Its records are compressed in a way that can't be opened here (lz4, zstd).
    #[error("its compression can't be opened here")]
    Opaque,
}

/// How the records of a batch are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// By gzip.
    Gzip,
    /// By snappy, framed or raw.
    Snappy,
    /// By lz4, which is not opened here.
    Lz4,
    /// By zstd, which is not opened here.
    Zstd,
}

/// The header of a record batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// The offset of the first record, also where compaction has removed that.
    pub base_offset: i64,
    /// The whole batch in bytes.
    pub size: usize,
    /// The epoch of the leader that appended it.
    pub leader_epoch: i32,
    /// The checksum it claims.
    pub crc: u32,
    /// Compression, timestamp type and flags as they are encoded.
    pub attributes: i16,
    /// The distance of the last offset from the first.
    pub last_offset_delta: i32,
    /// The timestamp that the records' deltas refer to; the delete horizon where that is set.
    pub base_timestamp: i64,
    /// The largest timestamp in it.
    pub max_timestamp: i64,
    /// The producer's id, -1 if it is not idempotent.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The sequence number of the first record, -1 if there is none.
    pub base_sequence: i32,
    /// How many records are left in it.
    pub count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes` and checks that the whole batch is there; not its CRC.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let base_offset = i64::from_be_bytes(array(bytes, 0)?);
        let length = i32::from_be_bytes(array(bytes, 8)?);
        let size = usize::try_from(length)
            .ok()
            .filter(|length| *length >= 14 - LENGTH_OVERHEAD)
            .and_then(|length| length.checked_add(LENGTH_OVERHEAD))
            .ok_or(BatchError::Corrupt("its length is too small"))?;
        if bytes.len() < size {
            return Err(BatchError::Incomplete);
        }
        if size <= MAGIC_AT {
            return Err(BatchError::Corrupt("its length is too small"));
        }
        let magic = i8::from_be_bytes(array(bytes, MAGIC_AT)?);
        if magic != 2 {
            return Err(BatchError::Magic(magic));
        }
        if size < HEADER_SIZE {
            return Err(BatchError::Corrupt("its length is too small"));
        }
        Ok(Self {
            base_offset,
            size,
            leader_epoch: i32::from_be_bytes(array(bytes, LEADER_EPOCH_AT)?),
            crc: u32::from_be_bytes(array(bytes, CRC_AT)?),
            attributes: i16::from_be_bytes(array(bytes, ATTRIBUTES_AT)?),
            last_offset_delta: i32::from_be_bytes(array(bytes, 23)?),
            base_timestamp: i64::from_be_bytes(array(bytes, 27)?),
            max_timestamp: i64::from_be_bytes(array(bytes, MAX_TIMESTAMP_AT)?),
            producer_id: i64::from_be_bytes(array(bytes, 43)?),
            producer_epoch: i16::from_be_bytes(array(bytes, 51)?),
            base_sequence: i32::from_be_bytes(array(bytes, 53)?),
            count: i32::from_be_bytes(array(bytes, 57)?),
        })
    }

    /// Checks that the counts don't contradict each other: compaction may remove records, but never adds one.
    pub fn check_counts(&self) -> Result<(), BatchError> {
        if self.count < 0
            || self.last_offset_delta < 0
            || self.count > self.last_offset_delta.saturating_add(1)
        {
            return Err(BatchError::Corrupt("its counts contradict each other"));
        }
        Ok(())
    }

    /// Checks the CRC of the batch that this header was read from.
    pub fn verify(&self, bytes: &[u8]) -> Result<(), BatchError> {
        let body = bytes.get(ATTRIBUTES_AT..self.size).ok_or(BatchError::Incomplete)?;
        if crc32c::crc32c(body) == self.crc { Ok(()) } else { Err(BatchError::Corrupt("its CRC is wrong")) }
    }

    /// The records' bytes in the batch that this header was read from, as they are stored.
    pub fn body<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], BatchError> {
        bytes.get(HEADER_SIZE..self.size).ok_or(BatchError::Incomplete)
    }

    /// The offset of the last record, also where compaction has removed that.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// The sequence number of the last record; behind the largest one comes 0.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 { -1 } else { sequence_after(self.base_sequence, self.last_offset_delta) }
    }

    /// How the records are compressed.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        match self.attributes & COMPRESSION_MASK {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            3 => Ok(Compression::Lz4),
            4 => Ok(Compression::Zstd),
            _ => Err(BatchError::Corrupt("its compression is unknown")),
        }
    }

    /// The producer is idempotent.
    pub fn has_producer(&self) -> bool {
        self.producer_id > NO_PRODUCER_ID
    }

    /// The batch belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// The batch holds a marker instead of data.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// All records have the broker's timestamp, which is `max_timestamp`.
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// From when on the tombstones or the marker in it may be removed.
    pub fn delete_horizon(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    /// Sets or clears the delete horizon. The records' deltas refer to `base_timestamp`, which this changes.
    pub(crate) fn set_delete_horizon(&mut self, horizon: Option<i64>, base_timestamp: i64) {
        match horizon {
            Some(horizon) => {
                self.attributes |= DELETE_HORIZON;
                self.base_timestamp = horizon;
            }
            None => {
                self.attributes &= !DELETE_HORIZON;
                self.base_timestamp = base_timestamp;
            }
        }
    }

    /// The header of the same batch after all its records were removed.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            attributes: self.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL),
            base_timestamp: -1,
            count: 0,
            ..*self
        }
    }

    /// The timestamp of a record with this delta.
    pub fn timestamp(&self, delta: i64) -> i64 {
        if self.is_log_append_time() { self.max_timestamp } else { self.base_timestamp.saturating_add(delta) }
    }

    /// Writes a whole batch with these records' bytes; `size` and `crc` are computed.
    pub(crate) fn encode(&self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_SIZE + body.len());
        out.extend_from_slice(&self.base_offset.to_be_bytes());
        // Only bodies that came in with a batch length, or parts of them, are written.
        let length = i32::try_from(HEADER_SIZE - LENGTH_OVERHEAD + body.len()).unwrap_or(i32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.leader_epoch.to_be_bytes());
        out.push(2);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.attributes.to_be_bytes());
        out.extend_from_slice(&self.last_offset_delta.to_be_bytes());
        out.extend_from_slice(&self.base_timestamp.to_be_bytes());
        out.extend_from_slice(&self.max_timestamp.to_be_bytes());
        out.extend_from_slice(&self.producer_id.to_be_bytes());
        out.extend_from_slice(&self.producer_epoch.to_be_bytes());
        out.extend_from_slice(&self.base_sequence.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(body);
        write_crc(&mut out);
        out
    }
}

/// The sequence number that lies `distance` behind another one; behind the largest one comes 0.
pub(crate) fn sequence_after(sequence: i32, distance: i32) -> i32 {
    // Both are not negative, so that the sum is below 2^32 and its low 31 bits are the number wrapped around.
    let sum = i64::from(sequence) + i64::from(distance);
    i32::try_from(sum & i64::from(i32::MAX)).unwrap_or(0)
}

/// The sequence number that lies `distance` before another one.
pub(crate) fn sequence_before(sequence: i32, distance: i32) -> i32 {
    let difference = i64::from(sequence) - i64::from(distance);
    i32::try_from(difference & i64::from(i32::MAX)).unwrap_or(0)
}

/// Writes base offset and leader epoch into a batch.
pub(crate) fn patch_place(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    write_at(batch, 0, &base_offset.to_be_bytes());
    write_at(batch, LEADER_EPOCH_AT, &leader_epoch.to_be_bytes());
}

/// Gives all records of a batch the broker's timestamp; this changes the CRC.
pub(crate) fn patch_append_time(batch: &mut [u8], header: &mut BatchHeader, now: i64) {
    header.attributes |= LOG_APPEND_TIME;
    header.max_timestamp = now;
    write_at(batch, ATTRIBUTES_AT, &header.attributes.to_be_bytes());
    write_at(batch, MAX_TIMESTAMP_AT, &now.to_be_bytes());
    header.crc = write_crc(batch);
}

/// Gives the records of a batch their producer's timestamps, where the producer said that they were the broker's; this
/// changes the CRC.
pub(crate) fn patch_create_time(batch: &mut [u8], header: &mut BatchHeader) {
    header.attributes &= !LOG_APPEND_TIME;
    write_at(batch, ATTRIBUTES_AT, &header.attributes.to_be_bytes());
    header.crc = write_crc(batch);
}

/// The attributes of a marker.
pub(crate) const MARKER_ATTRIBUTES: i16 = TRANSACTIONAL | CONTROL;

fn write_crc(batch: &mut [u8]) -> u32 {
    let crc = batch.get(ATTRIBUTES_AT..).map_or(0, crc32c::crc32c);
    write_at(batch, CRC_AT, &crc.to_be_bytes());
    crc
}

fn write_at(batch: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = batch.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], BatchError> {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk::<N>()).copied().ok_or(BatchError::Incomplete)
}
