//! Tests of the partition log, and what they share: batches as a producer sends them, and a reader as clients are.

mod batches;
mod cleaner;
pub(crate) mod compaction;
mod isolation;
mod limits;
mod offsets;
mod sequences;
mod state;

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use proptest::prelude::ProptestConfig;

use super::batch::{BatchHeader, Compression};
use super::records::{Records, write_record};
use super::{Isolation, Marker, PartitionLog, compression};

/// The time that tests begin at.
pub(crate) const NOW: i64 = 1_700_000_000_000;

/// So many random cases, and no files about failed ones.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A record as tests write it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sent {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) timestamp: i64,
}

pub(crate) fn record(key: &str, value: &str) -> Sent {
    Sent { key: Some(key.into()), value: Some(value.into()), timestamp: NOW }
}

pub(crate) fn tombstone(key: &str) -> Sent {
    Sent { key: Some(key.into()), value: None, timestamp: NOW }
}

/// A batch as a producer sends it.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) producer: (i64, i16, i32),
    pub(crate) transactional: bool,
    pub(crate) compression: Compression,
    pub(crate) records: Vec<Sent>,
}

impl Batch {
    pub(crate) fn plain(records: Vec<Sent>) -> Self {
        Self { producer: (-1, -1, -1), transactional: false, compression: Compression::None, records }
    }

    pub(crate) fn idempotent(producer: (i64, i16, i32), records: Vec<Sent>) -> Self {
        Self { producer, ..Self::plain(records) }
    }

    pub(crate) fn transactional(producer: (i64, i16, i32), records: Vec<Sent>) -> Self {
        Self { producer, transactional: true, ..Self::plain(records) }
    }

    pub(crate) fn header(&self) -> BatchHeader {
        let (producer_id, producer_epoch, base_sequence) = self.producer;
        let count = i32::try_from(self.records.len()).unwrap();
        let code = match self.compression {
            Compression::None => 0,
            Compression::Gzip => 1,
            Compression::Snappy => 2,
            Compression::Lz4 => 3,
            Compression::Zstd => 4,
        };
        BatchHeader {
            base_offset: 0,
            size: 0,
            leader_epoch: -1,
            crc: 0,
            attributes: code | if self.transactional { 0x10 } else { 0 },
            last_offset_delta: count - 1,
            base_timestamp: self.records.first().map_or(-1, |record| record.timestamp),
            max_timestamp: self.records.iter().map(|record| record.timestamp).max().unwrap_or(-1),
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        }
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let base = self.records.first().map_or(-1, |record| record.timestamp);
        let mut body = Vec::new();
        for (index, record) in (0..).zip(&self.records) {
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            write_record(record.timestamp - base, index, key, value, &mut body);
        }
        body
    }

    pub(crate) fn bytes(&self) -> Bytes {
        // Nothing here can write lz4 and zstd, and nothing may look into them.
        let body = compression::compress(self.compression, self.body()).unwrap_or_else(|_| vec![7; 10]);
        self.header().encode(&body).into()
    }
}

pub(crate) fn append(log: &mut PartitionLog, batch: &Batch) -> i64 {
    log.append(batch.bytes(), NOW).unwrap().base_offset
}

/// A record as a reader sees it.
pub(crate) type Seen = (i64, Sent);

/// Reads from an offset to the end as clients do: with the aborted transactions of each answer, batch by batch.
pub(crate) fn consume(log: &PartitionLog, from: i64, isolation: Isolation, max_bytes: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut position = from;
    loop {
        let fetched = log.read(position, max_bytes, isolation, true).unwrap();
        if fetched.records.is_empty() {
            return seen;
        }
        let mut aborted = fetched.aborted.clone();
        aborted.sort_by_key(|(_, first)| *first);
        let mut aborted = VecDeque::from(aborted);
        let mut aborting = BTreeSet::new();
        for (header, batch) in batches(&fetched.records) {
            while aborted.front().is_some_and(|(_, first)| *first <= header.last_offset()) {
                aborting.extend(aborted.pop_front().map(|(producer_id, _)| producer_id));
            }
            if header.is_control() {
                if Marker::read(&header, &batch).unwrap().is_some_and(|marker| !marker.commit) {
                    aborting.remove(&header.producer_id);
                }
            } else if !(header.is_transactional() && aborting.contains(&header.producer_id)) {
                seen.extend(records(&header, &batch).into_iter().filter(|(offset, _)| *offset >= position));
            }
            assert!(header.last_offset() >= position, "a batch before the position");
            position = header.last_offset() + 1;
        }
    }
}

/// The batches that bytes consist of, each with its CRC checked.
pub(crate) fn batches(bytes: &Bytes) -> Vec<(BatchHeader, Bytes)> {
    let mut rest = bytes.clone();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let header = BatchHeader::parse(&rest).unwrap();
        let batch = rest.split_to(header.size);
        header.verify(&batch).unwrap();
        header.check_counts().unwrap();
        found.push((header, batch));
    }
    found
}

pub(crate) fn records(header: &BatchHeader, batch: &[u8]) -> Vec<Seen> {
    let opened = Records::open(header, batch).unwrap();
    let seen = opened.iter().map(|record| {
        let record = record.unwrap();
        let sent = Sent {
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            timestamp: header.timestamp(record.timestamp_delta),
        };
        (header.base_offset + i64::from(record.offset_delta), sent)
    });
    seen.collect()
}

/// All bytes of a log.
pub(crate) fn all_bytes(log: &PartitionLog) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut position = log.log_start_offset();
    loop {
        let fetched = log.read(position, usize::MAX, Isolation::ReadUncommitted, true).unwrap();
        let Some((last, _)) = batches(&fetched.records).pop() else { return bytes };
        bytes.extend_from_slice(&fetched.records);
        position = last.last_offset() + 1;
    }
}
