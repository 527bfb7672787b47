//! Record batches, built byte by byte so that any part of them can be wrong on purpose.

use bytes::{BufMut, Bytes};

use crate::codec;

/// Bit of the attributes: the broker has set the timestamps.
pub const LOG_APPEND_TIME: i16 = 0x08;
/// Bit of the attributes: part of a transaction.
pub const TRANSACTIONAL: i16 = 0x10;
/// Bit of the attributes: control records.
pub const CONTROL: i16 = 0x20;

/// One record of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// `None`: null.
    pub key: Option<Vec<u8>>,
    /// `None`: null.
    pub value: Option<Vec<u8>>,
    /// Milliseconds after the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Names and values.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// A batch to write. The fields that are `Option` follow from the rest unless they are set.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its records.
    pub records: Vec<Record>,
    /// The offset that the client wrote, which a broker replaces.
    pub base_offset: i64,
    /// The leader epoch that the client wrote, which a broker replaces.
    pub leader_epoch: i32,
    /// 2, unless it is to be wrong.
    pub magic: i8,
    /// Codec, timestamp type, transactional, control.
    pub attributes: i16,
    /// Milliseconds since 1970.
    pub base_timestamp: i64,
    /// -1: none.
    pub producer_id: i64,
    /// -1: none.
    pub producer_epoch: i16,
    /// -1: none.
    pub base_sequence: i32,
    /// The checksum.
    pub crc: Option<u32>,
    /// The number of records.
    pub count: Option<i32>,
    /// The last record's offset less the base offset.
    pub last_offset_delta: Option<i32>,
    /// The length that stands in front of the batch.
    pub length: Option<i32>,
}

impl Batch {
    /// Records with these values and no keys.
    pub fn of<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> Batch {
        let record = |value: V| Record { value: Some(value.as_ref().to_vec()), ..Record::default() };
        Batch::records(values.into_iter().map(record).collect())
    }

    /// Records with keys and values; an empty value is null.
    pub fn keyed(pairs: &[(&str, &str)]) -> Batch {
        let record = |(key, value): &(&str, &str)| Record {
            key: Some(key.as_bytes().to_vec()),
            value: (!value.is_empty()).then(|| value.as_bytes().to_vec()),
            ..Record::default()
        };
        Batch::records(pairs.iter().map(record).collect())
    }

    /// These records, now, of no producer.
    pub fn records(records: Vec<Record>) -> Batch {
        Batch {
            records,
            base_offset: 0,
            leader_epoch: -1,
            magic: 2,
            attributes: 0,
            base_timestamp: now(),
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            crc: None,
            count: None,
            last_offset_delta: None,
            length: None,
        }
    }

    /// Of an idempotent producer.
    pub fn by(mut self, id: i64, epoch: i16, sequence: i32) -> Batch {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, sequence);
        self
    }

    /// Part of a transaction.
    pub fn transactional(mut self) -> Batch {
        self.attributes |= TRANSACTIONAL;
        self
    }

    /// Compressed.
    pub fn compressed(mut self, codec: i16) -> Batch {
        self.attributes |= codec;
        self
    }

    /// With the timestamp of its first record.
    pub fn at(mut self, timestamp: i64) -> Batch {
        self.base_timestamp = timestamp;
        self
    }

    /// As bytes of the protocol.
    pub fn encode(&self) -> Bytes {
        let mut body = Vec::new();
        for (delta, record) in (0i64..).zip(&self.records) {
            put_record(&mut body, delta, record);
        }
        let codec = self.attributes & 7;
        let body = if codec == 0 { body } else { codec::wrap(codec, &body) };
        let records = i32::try_from(self.records.len()).expect("a number of records");
        let latest = self.records.iter().map(|record| record.timestamp_delta).max().unwrap_or(0);

        let mut summed = Vec::new();
        summed.put_i16(self.attributes);
        summed.put_i32(self.last_offset_delta.unwrap_or(records - 1));
        summed.put_i64(self.base_timestamp);
        summed.put_i64(self.base_timestamp + latest);
        summed.put_i64(self.producer_id);
        summed.put_i16(self.producer_epoch);
        summed.put_i32(self.base_sequence);
        summed.put_i32(self.count.unwrap_or(records));
        summed.put_slice(&body);

        let mut bytes = Vec::new();
        bytes.put_i64(self.base_offset);
        bytes.put_i32(self.length.unwrap_or(i32::try_from(summed.len() + 9).expect("a batch's length")));
        bytes.put_i32(self.leader_epoch);
        bytes.put_i8(self.magic);
        bytes.put_u32(self.crc.unwrap_or_else(|| crc32c::crc32c(&summed)));
        bytes.put_slice(&summed);
        bytes.into()
    }
}

fn put_record(out: &mut Vec<u8>, offset_delta: i64, record: &Record) {
    let mut body = vec![0];
    put_varint(&mut body, record.timestamp_delta);
    put_varint(&mut body, offset_delta);
    put_bytes(&mut body, record.key.as_deref());
    put_bytes(&mut body, record.value.as_deref());
    put_varint(&mut body, record.headers.len() as i64);
    for (name, value) in &record.headers {
        put_bytes(&mut body, Some(name.as_bytes()));
        put_bytes(&mut body, value.as_deref());
    }
    put_varint(out, body.len() as i64);
    out.put_slice(&body);
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varint(out, bytes.len() as i64);
            out.put_slice(bytes);
        }
    }
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = (value << 1 ^ value >> 63) as u64;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

/// Milliseconds since 1970.
pub fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock after 1970");
    i64::try_from(now.as_millis()).expect("a clock before the year 292 million")
}
