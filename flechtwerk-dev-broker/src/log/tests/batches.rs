//! Batches: read and written as other implementations do, and never trusted.

use bytes::Bytes;
use kafka_protocol::records::{
    Compression as TheirCompression, Record as TheirRecord, RecordBatchDecoder, RecordBatchEncoder,
    RecordEncodeOptions, TimestampType as TheirTimestampType,
};
use proptest::prelude::*;

use super::*;
use crate::log::batch::{BatchError, sequence_after, sequence_before};
use crate::log::{AppendError, LogConfig};

fn theirs(offset: i64, key: &'static str, timestamp: i64) -> TheirRecord {
    TheirRecord {
        transactional: true,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 0,
        producer_id: 9,
        producer_epoch: 2,
        timestamp_type: TheirTimestampType::Creation,
        offset,
        sequence: 100 + i32::try_from(offset).unwrap(),
        timestamp,
        key: Some(Bytes::from_static(key.as_bytes())),
        value: None,
        headers: [("name".to_string().into(), Some(Bytes::from_static(b"header")))].into_iter().collect(),
    }
}

#[test]
fn a_batch_of_another_implementation_is_read() {
    let sent = [theirs(0, "a", NOW), theirs(1, "b", NOW + 7)];
    let mut bytes = bytes::BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression: TheirCompression::None };
    RecordBatchEncoder::encode(&mut bytes, sent.iter(), &options).unwrap();
    let found = batches(&bytes.freeze());
    let [(header, batch)] = found.as_slice() else { panic!("one batch") };
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (9, 2, 100));
    assert!(header.is_transactional() && !header.is_control());
    let expected = [(0, tombstone("a")), (1, Sent { timestamp: NOW + 7, ..tombstone("b") })];
    assert_eq!(records(header, batch), expected);
}

#[test]
fn a_marker_is_read_by_another_implementation() {
    let bytes = Marker { commit: true, coordinator_epoch: 3 }.encode(17, 0, 9, 2, NOW);
    let read = RecordBatchDecoder::decode(&mut Bytes::from(bytes)).unwrap().records;
    let [marker] = read.as_slice() else { panic!("one record") };
    assert!(marker.control && marker.transactional);
    assert_eq!((marker.offset, marker.producer_id, marker.producer_epoch), (17, 9, 2));
    assert_eq!(marker.key.as_deref(), Some([0, 0, 0, 1].as_slice()));
    assert_eq!(marker.value.as_deref(), Some([0, 0, 0, 0, 0, 3].as_slice()));
}

#[test]
fn compressed_records_are_opened() {
    let many: Vec<_> = (0..3000).map(|number| record(&format!("key {number}"), "the same value")).collect();
    for compression in [Compression::Gzip, Compression::Snappy] {
        let batch = Batch { compression, ..Batch::plain(many.clone()) };
        let bytes = batch.bytes();
        assert!(bytes.len() < batch.body().len() / 2);
        let seen = records(&BatchHeader::parse(&bytes).unwrap(), &bytes);
        assert!(seen.iter().map(|(_, sent)| sent).eq(&many));
    }
}

#[test]
fn snappy_without_framing_is_opened() {
    let batch = Batch { compression: Compression::Snappy, ..Batch::plain(vec![record("k", "v")]) };
    let raw = snap::raw::Encoder::new().compress_vec(&batch.body()).unwrap();
    let bytes = batch.header().encode(&raw);
    assert_eq!(records(&BatchHeader::parse(&bytes).unwrap(), &bytes), [(0, record("k", "v"))]);
}

#[test]
fn a_bomb_is_refused() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0; 1024 * 1024];
    for _ in 0..130 {
        gzip.write_all(&zeros).unwrap();
    }
    let gzip = gzip.finish().unwrap();
    assert!(matches!(compression::decompress(Compression::Gzip, &gzip), Err(BatchError::Corrupt(_))));
    // A snappy block of four gigabytes, as its first bytes say.
    let lie = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0];
    assert!(matches!(compression::decompress(Compression::Snappy, &lie), Err(BatchError::Corrupt(_))));
}

#[test]
fn a_negative_number_of_records_is_refused() {
    let batch = Batch::plain(vec![record("k", "v")]);
    let bytes = BatchHeader { count: i32::MIN, ..batch.header() }.encode(&batch.body());
    let header = BatchHeader::parse(&bytes).unwrap();
    assert!(matches!(Records::open(&header, &bytes), Err(BatchError::Corrupt(_))));
}

#[test]
fn sequences_wrap_around() {
    assert_eq!(sequence_after(i32::MAX, 0), i32::MAX);
    assert_eq!(sequence_after(i32::MAX, 1), 0);
    assert_eq!(sequence_after(i32::MAX - 1, 4), 2);
    assert_eq!(sequence_before(2, 4), i32::MAX - 1);
    assert_eq!(sequence_before(5, 5), 0);
}

fn any_batch() -> impl Strategy<Value = Batch> {
    let compression = prop_oneof![
        Just(Compression::None),
        Just(Compression::Gzip),
        Just(Compression::Snappy),
        Just(Compression::Zstd)
    ];
    let bytes = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20));
    let sent = (bytes.clone(), bytes, 0..1000_i64).prop_map(|(key, value, later)| Sent {
        key,
        value,
        timestamp: NOW + later,
    });
    let records = proptest::collection::vec(sent, 1..6);
    (records, compression, any::<bool>()).prop_map(|(records, compression, transactional)| Batch {
        compression,
        ..if transactional { Batch::transactional((1, 0, 0), records) } else { Batch::plain(records) }
    })
}

/// Looks into bytes in every way there is; none may panic.
fn look_into(bytes: &[u8]) {
    if let Ok(header) = BatchHeader::parse(bytes) {
        let _ = (header.check_counts(), header.verify(bytes), header.last_offset(), header.last_sequence());
        let _ = Marker::read(&header, bytes);
        if let Ok(records) = Records::open(&header, bytes) {
            for record in records.iter() {
                let _ = record.map(|record| header.timestamp(record.timestamp_delta));
            }
        }
    }
    for config in [LogConfig::default(), LogConfig { compact: true, ..LogConfig::default() }] {
        let mut log = PartitionLog::in_memory(config);
        let _ = log.append(Bytes::copy_from_slice(bytes), NOW);
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        look_into(&bytes);
    }

    #[test]
    fn a_damaged_batch_is_refused(batch in any_batch(), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let mut bytes = batch.bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        look_into(&bytes);
        let mut log = PartitionLog::in_memory(LogConfig::default());
        // The leader epoch is not the producer's business.
        if !(12..16).contains(&at) {
            prop_assert!(log.append(bytes.into(), NOW).is_err());
            prop_assert_eq!(log.high_watermark(), 0);
        }
    }

    /// With the CRC made right again, the damage reaches what lies behind that check.
    #[test]
    fn damage_behind_the_crc_is_survived(
        batch in any_batch(),
        at in any::<prop::sample::Index>(),
        new in proptest::collection::vec(any::<u8>(), 1..9),
    ) {
        let mut bytes = batch.bytes().to_vec();
        let at = 21 + at.index(bytes.len() - 21);
        for (place, new) in bytes[at..].iter_mut().zip(new) {
            *place = new;
        }
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        look_into(&bytes);
    }

    #[test]
    fn a_cut_off_batch_is_refused(batch in any_batch(), cut in any::<prop::sample::Index>()) {
        let bytes = batch.bytes();
        let cut = bytes.slice(..cut.index(bytes.len()));
        let mut log = PartitionLog::in_memory(LogConfig::default());
        prop_assert!(matches!(log.append(cut, NOW), Err(AppendError::InvalidRecord(_))));
    }

    #[test]
    fn a_batch_comes_back_as_it_was(batch in any_batch()) {
        let bytes = batch.bytes();
        let mut log = PartitionLog::in_memory(LogConfig::default());
        append(&mut log, &Batch::plain(vec![record("before", "it")]));
        prop_assert_eq!(log.append(bytes.clone(), NOW).unwrap().base_offset, 1);
        let fetched = log.read(1, 1, Isolation::ReadUncommitted, true).unwrap();
        prop_assert_eq!(&fetched.records[17..], &bytes[17..]);
        let found = batches(&fetched.records);
        prop_assert_eq!(found[0].0.base_offset, 1);
        if batch.compression != Compression::Zstd {
            let seen = records(&found[0].0, &found[0].1);
            prop_assert!(seen.iter().map(|(_, sent)| sent).eq(&batch.records));
        }
    }
}
