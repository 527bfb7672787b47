//! What a producer may send: the checks that Kafka makes before it looks at sequence numbers.

use super::batch::{BatchError, BatchHeader, Compression};
use super::records::Records;
use super::{AppendError, LogConfig, TimestampType};

/// The single batch that a producer's records must consist of. Bytes behind it that are no whole batch are ignored.
pub(crate) fn single_batch(records: &[u8]) -> Result<(BatchHeader, &[u8]), AppendError> {
    let header = BatchHeader::parse(records).map_err(|error| match error {
        BatchError::Incomplete => AppendError::InvalidRecord("there is no complete batch"),
        BatchError::Corrupt(reason) => AppendError::Corrupt(reason),
        BatchError::Magic(magic @ 0..=1) => AppendError::UnsupportedMagic(magic),
        BatchError::Magic(_) => AppendError::Corrupt("its magic is unknown"),
        BatchError::Opaque => AppendError::InvalidRecord("its compression is unknown"),
    })?;
    let (batch, rest) = records
        .split_at_checked(header.size)
        .ok_or(AppendError::InvalidRecord("there is no complete batch"))?;
    match BatchHeader::parse(rest) {
        Err(BatchError::Incomplete) => Ok((header, batch)),
        Err(BatchError::Corrupt(reason)) => Err(AppendError::Corrupt(reason)),
        _ => Err(AppendError::InvalidRecord("there is more than one batch")),
    }
}

/// Checks a batch against the topic's settings.
pub(crate) fn check(
    header: &BatchHeader,
    batch: &[u8],
    config: &LogConfig,
    now: i64,
) -> Result<(), AppendError> {
    let refuse = |reason| Err(AppendError::InvalidRecord(reason));
    if header.base_offset != 0 {
        return refuse("its base offset is not 0");
    }
    if header.size > config.max_message_bytes {
        return Err(AppendError::TooLarge { size: header.size, max: config.max_message_bytes });
    }
    header.verify(batch).map_err(|_| AppendError::Corrupt("its CRC is wrong"))?;
    if header.is_control() {
        return refuse("only the broker writes control records");
    }
    if header.has_producer() && header.base_sequence < 0 {
        return refuse("an idempotent producer needs a sequence number");
    }
    if header.is_transactional() && !header.has_producer() {
        return refuse("a transaction needs a producer id");
    }
    if header.count <= 0 || header.last_offset_delta.checked_add(1) != Some(header.count) {
        return refuse("its counts contradict each other");
    }
    if header.is_log_append_time() && config.timestamp_type == TimestampType::LogAppendTime {
        return Err(AppendError::InvalidTimestamp { timestamp: header.max_timestamp });
    }
    check_records(header, batch, config, now)
}

/// Checks the records. Compressed ones are opened only where each needs a key.
fn check_records(
    header: &BatchHeader,
    batch: &[u8],
    config: &LogConfig,
    now: i64,
) -> Result<(), AppendError> {
    let opened = match header.compression().map_err(invalid)? {
        Compression::None => Some(Records::open(header, batch).map_err(invalid)?),
        Compression::Gzip | Compression::Snappy if config.compact => {
            Some(Records::open(header, batch).map_err(invalid)?)
        }
        Compression::Gzip | Compression::Snappy | Compression::Lz4 | Compression::Zstd => None,
    };
    let Some(records) = opened else { return check_timestamp(header.max_timestamp, config, now) };
    let mut without_key = Vec::new();
    for (expected, record) in (0..).zip(records.iter()) {
        let record = record.map_err(invalid)?;
        if record.offset_delta != expected {
            return Err(AppendError::InvalidRecord("its offsets are not consecutive"));
        }
        if config.compact && record.key.is_none() {
            without_key.push(record.offset_delta);
        }
        check_timestamp(header.timestamp(record.timestamp_delta), config, now)?;
    }
    if without_key.is_empty() { Ok(()) } else { Err(AppendError::WithoutKey { records: without_key }) }
}

fn check_timestamp(timestamp: i64, config: &LogConfig, now: i64) -> Result<(), AppendError> {
    let allowed = config.timestamp_type == TimestampType::LogAppendTime
        || timestamp == -1
        || (timestamp >= now.saturating_sub(config.timestamp_before_max_ms)
            && timestamp <= now.saturating_add(config.timestamp_after_max_ms));
    if allowed { Ok(()) } else { Err(AppendError::InvalidTimestamp { timestamp }) }
}

fn invalid(error: BatchError) -> AppendError {
    AppendError::InvalidRecord(match error {
        BatchError::Corrupt(reason) => reason,
        BatchError::Incomplete | BatchError::Magic(_) | BatchError::Opaque => "its records can't be read",
    })
}
