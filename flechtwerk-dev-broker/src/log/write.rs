//! Writes a batch as a producer would, for simulations, which have no client.

use bytes::Bytes;

use super::batch::BatchHeader;
use super::records::write_record;
use crate::coordinator::Producer;

const TRANSACTIONAL: i16 = 0x10;

/// Key and value of a record; `None` is null.
pub type KeyAndValue<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// A batch of records without headers. `producer`: who writes it in a transaction, with the sequence number of the first record.
pub fn write_batch(producer: Option<(Producer, i32)>, timestamp: i64, records: &[KeyAndValue<'_>]) -> Bytes {
    let mut body = Vec::with_capacity(records.len() * 48);
    for (delta, (key, value)) in (0..).zip(records) {
        write_record(0, delta, *key, *value, &mut body);
    }
    let count = i32::try_from(records.len()).unwrap_or(i32::MAX);
    let header = BatchHeader {
        base_offset: 0,
        size: 0,
        leader_epoch: -1,
        crc: 0,
        attributes: if producer.is_some() { TRANSACTIONAL } else { 0 },
        last_offset_delta: count - 1,
        base_timestamp: timestamp,
        max_timestamp: timestamp,
        producer_id: producer.map_or(-1, |(producer, _)| producer.id),
        producer_epoch: producer.map_or(-1, |(producer, _)| producer.epoch),
        base_sequence: producer.map_or(-1, |(_, sequence)| sequence),
        count,
    };
    header.encode(&body).into()
}
