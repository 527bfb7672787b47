//! A million records use at most one and a half times their bytes in the log.

use bytes::{Bytes, BytesMut};
use flechtwerk_dev_broker::log::{CompactOptions, Isolation, LogConfig, PartitionLog};
use kafka_protocol::records::{Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType};

const NOW: i64 = 1_700_000_000_000;

/// A batch of records with values of 100 bytes.
fn batch(records: i64) -> Bytes {
    let records: Vec<_> = (0..records)
        .map(|offset| Record {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: 0,
            producer_id: -1,
            producer_epoch: -1,
            timestamp_type: TimestampType::Creation,
            offset,
            // The encoder wants numbers that follow each other to make one batch; without a producer they mean nothing.
            sequence: i32::try_from(offset).unwrap(),
            timestamp: NOW,
            key: Some(Bytes::from(format!("{offset:08}"))),
            value: Some(Bytes::from(vec![b'v'; 100])),
            headers: Default::default(),
        })
        .collect();
    let mut bytes = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression: Compression::None };
    RecordBatchEncoder::encode(&mut bytes, &records, &options).unwrap();
    bytes.freeze()
}

/// The bytes of a log that so many batches were appended to, and the memory that it keeps.
fn kept(batch: &Bytes, batches: usize) -> (f64, f64) {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    let info = allocation_counter::measure(|| {
        for _ in 0..batches {
            log.append(batch.clone(), NOW).unwrap();
        }
    });
    (log.size_bytes() as f64, info.bytes_current as f64)
}

#[test]
fn a_million_records_in_batches_of_500() {
    let (bytes, memory) = kept(&batch(500), 2000);
    assert!(bytes > 100_000_000.0);
    assert!(memory < bytes * 1.1, "{memory} for {bytes}");
}

#[test]
fn batches_of_one_record() {
    let (bytes, memory) = kept(&batch(1), 100_000);
    assert!(memory < bytes * 1.5, "{memory} for {bytes}");
}

#[test]
fn a_read_of_what_is_complete_copies_nothing() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    let batch = batch(500);
    for _ in 0..100 {
        log.append(batch.clone(), NOW).unwrap();
    }
    let info = allocation_counter::measure(|| {
        let fetched = log.read(0, 1_000_000, Isolation::ReadCommitted, true).unwrap();
        assert!(fetched.records.len() > 900_000);
    });
    assert!(info.bytes_total < 1000, "{info:?}");
}

#[test]
fn what_is_deleted_or_compacted_away_is_given_back() {
    let mut log = PartitionLog::in_memory(LogConfig::default());
    let batch = batch(500);
    let info = allocation_counter::measure(|| {
        for _ in 0..200 {
            log.append(batch.clone(), NOW).unwrap();
        }
        log.compact(NOW, CompactOptions::default()).unwrap();
    });
    let size = log.size_bytes();
    assert!(size < batch.len() * 3, "the newest values of 500 keys and the last batch are left: {size}");
    assert!(info.bytes_current < 500_000, "{info:?}");
    let info = allocation_counter::measure(|| {
        log.delete_records(-1).unwrap();
    });
    assert!(info.bytes_current <= -i64::try_from(size).unwrap(), "{info:?}");
}
