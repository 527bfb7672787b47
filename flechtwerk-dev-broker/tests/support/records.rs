//! Record batches: written as a producer writes them, and read as a consumer does.

use std::collections::BTreeSet;

use bytes::{Buf, BufMut, Bytes, BytesMut};

const TRANSACTIONAL: u8 = 0x10;
const CONTROL: u8 = 0x20;

/// Who writes a batch in a transaction: producer id, epoch, and the sequence number of the first record.
pub(crate) type By = (i64, i16, i32);

/// A record's key and value.
pub(crate) type Record<'a> = (Option<&'a [u8]>, &'a [u8]);

/// A batch with these records.
pub(crate) fn batch_of(by: Option<By>, records: &[Record<'_>]) -> Bytes {
    let count = records.len() as i32;
    let size: usize = records.iter().map(|(key, value)| key.map_or(0, <[u8]>::len) + value.len() + 24).sum();
    let mut body = BytesMut::with_capacity(size + 64);
    let (id, epoch, sequence) = by.unwrap_or((-1, -1, -1));
    body.put_i16(if by.is_some() { i16::from(TRANSACTIONAL) } else { 0 });
    body.put_i32(count - 1);
    body.put_i64(1_700_000_000_000);
    body.put_i64(1_700_000_000_000);
    body.put_i64(id);
    body.put_i16(epoch);
    body.put_i32(sequence);
    body.put_i32(count);
    let mut record = Vec::new();
    let mut length = Vec::with_capacity(5);
    for (delta, (key, value)) in (0..).zip(records) {
        record.clear();
        record.extend_from_slice(&[0, 0]);
        put_varint(&mut record, delta);
        put_varint(&mut record, key.map_or(-1, |key| key.len() as i64));
        record.extend_from_slice(key.unwrap_or_default());
        put_varint(&mut record, value.len() as i64);
        record.extend_from_slice(value);
        put_varint(&mut record, 0);
        length.clear();
        put_varint(&mut length, record.len() as i64);
        body.put_slice(&length);
        body.put_slice(&record);
    }
    let mut batch = BytesMut::with_capacity(body.len() + 21);
    batch.put_i64(0);
    batch.put_i32(body.len() as i32 + 9);
    batch.put_i32(-1);
    batch.put_i8(2);
    batch.put_u32(crc32c::crc32c(&body));
    batch.put_slice(&body);
    batch.freeze()
}

/// What a batch holds.
pub(crate) struct Read {
    /// The offset behind its last record, also where that is no longer there.
    pub(crate) next_offset: i64,
    pub(crate) control: bool,
    /// Of which transaction it is a part.
    pub(crate) producer: Option<i64>,
    /// Offsets, keys and values.
    pub(crate) records: Vec<(i64, Vec<u8>, Vec<u8>)>,
}

/// Whole batches in the answer to a Fetch.
pub(crate) fn read(mut batches: Bytes) -> Vec<Read> {
    let mut all = Vec::new();
    while batches.len() >= 61 {
        let size = 12 + i32::from_be_bytes(batches[8..12].try_into().unwrap()) as usize;
        if size > batches.len() {
            break;
        }
        let mut batch = batches.split_to(size);
        let base = i64::from_be_bytes(batch[..8].try_into().unwrap());
        let last = i64::from(i32::from_be_bytes(batch[23..27].try_into().unwrap()));
        let (control, part) = (batch[22] & CONTROL != 0, batch[22] & TRANSACTIONAL != 0);
        let id = i64::from_be_bytes(batch[43..51].try_into().unwrap());
        batch.advance(57);
        let records = (0..batch.get_i32()).map(|_| get_record(base, &mut batch)).collect();
        all.push(Read { next_offset: base + last + 1, control, producer: part.then_some(id), records });
    }
    all
}

/// What a read-committed reader sees of batches, with the aborted transactions that came with them: producer ids and first offsets.
pub(crate) fn committed(batches: Vec<Read>, aborted: &[(i64, i64)]) -> Vec<(i64, Vec<u8>, Vec<u8>)> {
    let mut aborting = BTreeSet::new();
    let mut ahead = aborted.to_vec();
    let mut seen = Vec::new();
    for batch in batches {
        ahead.retain(|(producer, first)| {
            let reached = *first < batch.next_offset;
            if reached {
                aborting.insert(*producer);
            }
            !reached
        });
        match batch.producer {
            Some(producer) if batch.control => {
                aborting.remove(&producer);
            }
            Some(producer) if aborting.contains(&producer) => {}
            _ => seen.extend(batch.records),
        }
    }
    seen
}

fn get_record(base: i64, from: &mut Bytes) -> (i64, Vec<u8>, Vec<u8>) {
    let length = get_varint(from) as usize;
    let mut record = from.split_to(length);
    record.advance(1);
    get_varint(&mut record);
    let delta = get_varint(&mut record);
    let (key, value) = (get_bytes(&mut record), get_bytes(&mut record));
    (base + delta, key, value)
}

fn get_bytes(from: &mut Bytes) -> Vec<u8> {
    usize::try_from(get_varint(from)).map(|length| from.split_to(length).to_vec()).unwrap_or_default()
}

/// A number as records have it.
pub(crate) fn get_varint(from: &mut Bytes) -> i64 {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let byte = from.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return (value >> 1) as i64 ^ -((value & 1) as i64);
        }
        shift += 7;
    }
}

fn put_varint(into: &mut Vec<u8>, value: i64) {
    let mut bits = ((value << 1) ^ (value >> 63)) as u64;
    while bits >= 0x80 {
        into.push((bits as u8 & 0x7f) | 0x80);
        bits >>= 7;
    }
    into.push(bits as u8);
}
