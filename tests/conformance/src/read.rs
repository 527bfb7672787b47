//! Record batches as a broker answers them, and what a reader sees of them.

use std::collections::BTreeSet;

use bytes::{Buf, Bytes};

use crate::batch::{CONTROL, Record, TRANSACTIONAL};
use crate::codec;

/// A batch that was read.
#[derive(Clone, Debug)]
pub struct ReadBatch {
    /// The offset of its first record when it was written.
    pub base_offset: i64,
    /// The epoch of the leader that wrote it.
    pub leader_epoch: i32,
    /// 2.
    pub magic: i8,
    /// Whether the checksum is right.
    pub crc_is_right: bool,
    /// Codec, timestamp type, transactional, control.
    pub attributes: i16,
    /// The last record's offset, whether or not it still is there.
    pub last_offset: i64,
    /// Milliseconds since 1970.
    pub base_timestamp: i64,
    /// Milliseconds since 1970.
    pub max_timestamp: i64,
    /// -1: none.
    pub producer_id: i64,
    /// -1: none.
    pub producer_epoch: i16,
    /// -1: none.
    pub base_sequence: i32,
    /// Offsets and records.
    pub records: Vec<(i64, Record)>,
    /// The bytes after the batch's head, as they are.
    pub body: Bytes,
}

impl ReadBatch {
    /// Whether it is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether it ends a transaction.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Whether it is the end of a transaction that was committed.
    pub fn is_commit(&self) -> bool {
        self.is_control() && self.marker() == Some(1)
    }

    /// Whether it is the end of a transaction that was aborted.
    pub fn is_abort(&self) -> bool {
        self.is_control() && self.marker() == Some(0)
    }

    /// The type in a control record's key: version and type, two bytes each.
    fn marker(&self) -> Option<u8> {
        self.records.first()?.1.key.as_ref()?.get(3).copied()
    }
}

/// All whole batches in what a broker has answered; the end may be cut off.
pub fn batches(mut bytes: Bytes) -> Vec<ReadBatch> {
    let mut batches = Vec::new();
    while bytes.len() >= 61 {
        let length = i32::from_be_bytes(bytes[8..12].try_into().expect("four bytes"));
        let length = usize::try_from(length).expect("a batch's length") + 12;
        if bytes.len() < length {
            break;
        }
        batches.push(batch(bytes.split_to(length)));
    }
    batches
}

fn batch(mut bytes: Bytes) -> ReadBatch {
    let base_offset = bytes.get_i64();
    let _length = bytes.get_i32();
    let leader_epoch = bytes.get_i32();
    let magic = bytes.get_i8();
    let crc = bytes.get_u32();
    let crc_is_right = crc == crc32c::crc32c(&bytes);
    let attributes = bytes.get_i16();
    let last_offset = base_offset + i64::from(bytes.get_i32());
    let base_timestamp = bytes.get_i64();
    let max_timestamp = bytes.get_i64();
    let producer_id = bytes.get_i64();
    let producer_epoch = bytes.get_i16();
    let base_sequence = bytes.get_i32();
    let count = bytes.get_i32();
    let body = bytes.clone();
    let mut plain = Bytes::from(codec::unwrap(attributes & 7, &bytes));
    let records = (0..count).map(|_| record(&mut plain, base_offset)).collect();
    assert!(plain.is_empty(), "{} bytes after the last of {count} records", plain.len());
    ReadBatch {
        base_offset,
        leader_epoch,
        magic,
        crc_is_right,
        attributes,
        last_offset,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        records,
        body,
    }
}

fn record(bytes: &mut Bytes, base_offset: i64) -> (i64, Record) {
    let length = usize::try_from(varint(bytes)).expect("a record's length");
    let mut bytes = bytes.split_to(length);
    let _attributes = bytes.get_i8();
    let timestamp_delta = varint(&mut bytes);
    let offset = base_offset + varint(&mut bytes);
    let (key, value) = (nullable(&mut bytes), nullable(&mut bytes));
    let headers = (0..varint(&mut bytes))
        .map(|_| {
            let name = nullable(&mut bytes).expect("a header's name");
            (String::from_utf8(name).expect("a header's name"), nullable(&mut bytes))
        })
        .collect();
    (offset, Record { key, value, timestamp_delta, headers })
}

fn nullable(bytes: &mut Bytes) -> Option<Vec<u8>> {
    let length = usize::try_from(varint(bytes)).ok()?;
    Some(bytes.split_to(length).to_vec())
}

fn varint(bytes: &mut Bytes) -> i64 {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let byte = bytes.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return (value >> 1) as i64 ^ -((value & 1) as i64);
        }
    }
}

/// What a client hands to its user from an answer: offsets and values from `from` on, without control records, and
/// without aborted ones where the answer has a list of them.
pub fn visible(batches: &[ReadBatch], aborted: &[(i64, i64)], from: i64) -> Vec<(i64, String)> {
    let mut aborted = aborted.to_vec();
    aborted.sort_by_key(|(_, first)| *first);
    let mut aborted = aborted.into_iter().peekable();
    let mut open = BTreeSet::new();
    let mut seen = Vec::new();
    for batch in batches {
        while let Some((producer, _)) = aborted.next_if(|(_, first)| *first <= batch.last_offset) {
            open.insert(producer);
        }
        if batch.is_control() {
            if batch.is_abort() {
                open.remove(&batch.producer_id);
            }
            continue;
        }
        if batch.is_transactional() && open.contains(&batch.producer_id) {
            continue;
        }
        for (offset, record) in &batch.records {
            if *offset >= from {
                seen.push((
                    *offset,
                    String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned(),
                ));
            }
        }
    }
    seen
}
