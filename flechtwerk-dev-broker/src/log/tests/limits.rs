//! What a producer may not send, and the error code for each of it.

use super::*;
use crate::log::{AppendError, LogConfig, TimestampType};

fn refused(config: LogConfig, bytes: impl Into<Bytes>) -> i16 {
    let mut log = PartitionLog::in_memory(config);
    let error = log.append(bytes.into(), NOW).unwrap_err();
    assert_eq!((log.high_watermark(), log.size_bytes()), (0, 0), "{error}");
    error.code()
}

fn changed(change: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
    let batch = Batch::idempotent((1, 0, 0), vec![record("a", "1"), record("b", "2")]);
    let mut header = batch.header();
    change(&mut header);
    header.encode(&batch.body())
}

#[test]
fn a_batch_must_be_sound() {
    let good = changed(|_| {});
    PartitionLog::in_memory(LogConfig::default()).append(good.clone().into(), NOW).unwrap();
    let mut crc = good.clone();
    crc[70] ^= 1;
    let mut magic = good.clone();
    magic[16] = 1;
    let mut newer = good.clone();
    newer[16] = 3;
    let mut short = good.clone();
    short[8..12].copy_from_slice(&20_i32.to_be_bytes());
    let mut negative = good.clone();
    negative[8..12].copy_from_slice(&(-1_i32).to_be_bytes());
    let mut long = good.clone();
    long[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    let cases = [(crc, 2), (magic, 87), (newer, 2), (short, 2), (negative, 2), (long, 87), (Vec::new(), 87)];
    for (index, (bytes, code)) in cases.into_iter().enumerate() {
        assert_eq!(refused(LogConfig::default(), bytes), code, "case {index}");
    }
}

#[test]
fn a_header_must_make_sense() {
    let cases = [
        changed(|header| header.base_offset = 5),
        changed(|header| header.attributes |= 0x20),
        changed(|header| header.attributes |= 0x07),
        changed(|header| header.base_sequence = -1),
        changed(|header| header.count = 3),
        changed(|header| header.count = 0),
        changed(|header| header.count = -1),
        changed(|header| header.last_offset_delta = 5),
        changed(|header| header.last_offset_delta = -1),
        changed(|header| (header.count, header.last_offset_delta) = (3, 2)),
        changed(|header| (header.count, header.last_offset_delta) = (i32::MAX, i32::MAX)),
        changed(|header| (header.producer_id, header.attributes) = (-1, 0x10)),
    ];
    for (index, bytes) in cases.into_iter().enumerate() {
        assert_eq!(refused(LogConfig::default(), bytes), 87, "case {index}");
    }
}

#[test]
fn one_batch_at_a_time() {
    let good = changed(|_| {});
    assert_eq!(refused(LogConfig::default(), [good.clone(), good.clone()].concat()), 87);
    let mut log = PartitionLog::in_memory(LogConfig::default());
    log.append([good.as_slice(), &good[..30]].concat().into(), NOW).unwrap();
    assert_eq!(log.size_bytes(), good.len());
}

#[test]
fn a_batch_may_be_as_large_as_the_topic_says() {
    let good = changed(|_| {});
    let config = |max_message_bytes| LogConfig { max_message_bytes, ..LogConfig::default() };
    assert_eq!(refused(config(good.len() - 1), good.clone()), 10);
    PartitionLog::in_memory(config(good.len())).append(good.into(), NOW).unwrap();
}

#[test]
fn a_compacted_topic_needs_keys() {
    let config = LogConfig { compact: true, ..LogConfig::default() };
    let keyless = Sent { key: None, ..record("", "v") };
    for compression in [Compression::None, Compression::Gzip, Compression::Snappy] {
        let batch = Batch { compression, ..Batch::plain(vec![record("k", "v"), keyless.clone()]) };
        assert_eq!(refused(config.clone(), batch.bytes()), 87);
        let mut log = PartitionLog::in_memory(LogConfig::default());
        append(&mut log, &batch);
        let batch = Batch { compression, ..Batch::plain(vec![record("k", "v")]) };
        append(&mut PartitionLog::in_memory(config.clone()), &batch);
    }
}

#[test]
fn timestamps_lie_near_the_time() {
    let at = |timestamp| Batch::plain(vec![Sent { timestamp, ..record("k", "v") }]).bytes();
    let config =
        LogConfig { timestamp_before_max_ms: 1000, timestamp_after_max_ms: 10, ..LogConfig::default() };
    for timestamp in [NOW - 1001, NOW + 11, i64::MAX, i64::MIN] {
        assert_eq!(refused(config.clone(), at(timestamp)), 32);
    }
    let mut log = PartitionLog::in_memory(config.clone());
    for timestamp in [NOW - 1000, NOW, NOW + 10, -1] {
        log.append(at(timestamp), NOW).unwrap();
    }
}

#[test]
fn a_producer_is_not_the_broker() {
    let claimed = changed(|header| header.attributes |= 0x08);
    let config = LogConfig { timestamp_type: TimestampType::LogAppendTime, ..LogConfig::default() };
    assert_eq!(refused(config, claimed.clone()), 32);
    let mut log = PartitionLog::in_memory(LogConfig::default());
    log.append(claimed.into(), NOW).unwrap();
    let fetched = log.read(0, 1000, Isolation::ReadUncommitted, true).unwrap();
    assert!(batches(&fetched.records).iter().all(|(header, _)| !header.is_log_append_time()));
}

#[test]
fn an_epoch_is_not_needed() {
    // As in Kafka, where such a producer may go on with any sequence number.
    let mut log = PartitionLog::in_memory(LogConfig::default());
    for sequence in [7, 3] {
        append(&mut log, &Batch::idempotent((1, -1, sequence), vec![record("k", "v")]));
    }
    assert_eq!(log.high_watermark(), 2);
}

#[test]
fn the_broker_gives_the_time_where_it_is_asked_to() {
    let config = LogConfig { timestamp_type: TimestampType::LogAppendTime, ..LogConfig::default() };
    let mut log = PartitionLog::in_memory(config);
    let batch = Batch::plain(vec![Sent { timestamp: 5, ..record("a", "1") }, record("b", "2")]);
    assert_eq!(log.append(batch.bytes(), NOW + 9).unwrap().log_append_time, NOW + 9);
    let seen = consume(&log, 0, Isolation::ReadUncommitted, 1000);
    assert!(seen.iter().all(|(_, sent)| sent.timestamp == NOW + 9));
    assert_eq!(seen.len(), 2);
}

#[test]
fn errors_show_no_payload() {
    let batch = Batch::plain(vec![record("secret key", "secret value")]);
    let mut bytes = batch.bytes().to_vec();
    bytes[70] ^= 1;
    let mut log = PartitionLog::in_memory(LogConfig::default());
    let error: AppendError = log.append(bytes.into(), NOW).unwrap_err();
    assert_eq!(error.to_string(), "record batch is damaged: its CRC is wrong");
    let bytes = batch.bytes();
    let opened = Records::open(&BatchHeader::parse(&bytes).unwrap(), &bytes).unwrap();
    let shown = format!("{:?}", opened.iter().next());
    assert!(!shown.contains("115, 101") && !shown.contains("secret"), "{shown}");
}
