//! Partition logs: batches of which some lie, markers, reads, deletions and compaction.

use bytes::Bytes;

use super::Entropy;
use crate::log::batch::{BatchHeader, Compression, HEADER_SIZE};
use crate::log::{
    CompactOptions, Isolation, LogConfig, OffsetSpec, PartitionLog, Records, compress, write_record,
};

const NOW: i64 = 1_700_000_000_000;
const MOST_STEPS: usize = 60;
/// Where the checksum lies, and where what it covers begins.
const CRC_AT: usize = 17;
const COVERED_FROM: usize = 21;

/// The history of one log.
pub fn logs(entropy: &mut Entropy<'_>) {
    let compact = entropy.percent(50);
    let config = LogConfig {
        compact,
        delete: true,
        max_message_bytes: 10_000,
        segment_bytes: 500,
        ..LogConfig::default()
    };
    let mut log = PartitionLog::in_memory(config);
    for step in 0..entropy.below(MOST_STEPS) {
        if entropy.is_empty() {
            return;
        }
        let now = NOW + step as i64 * 40_000_000;
        match entropy.below(12) {
            0..=6 => append(&mut log, entropy, now),
            7..=8 => {
                let (producer, epoch) = (entropy.below(3) as i64, entropy.below(3) as i16);
                let _ = log.append_marker(producer, epoch, entropy.percent(50), 0, now);
            }
            9 => {
                let before = entropy.below(50) as i64 - 2;
                let _ = log.delete_records(before);
            }
            10 => {
                let active_from = entropy.percent(50).then(|| log.active_segment());
                log.compact(now, CompactOptions { active_from }).expect("a log in memory can be compacted");
            }
            _ => log.expire_producers(now),
        }
        check(&log, entropy);
    }
}

fn append(log: &mut PartitionLog, entropy: &mut Entropy<'_>, now: i64) {
    let bytes = Bytes::from(batch(entropy));
    // What a reader does with whatever a batch says of itself.
    if let Ok(header) = BatchHeader::parse(&bytes)
        && let Ok(records) = Records::open(&header, &bytes)
    {
        let _ = records.iter().take(10_000).take_while(Result::is_ok).count();
    }
    let end = log.high_watermark();
    match log.append(bytes, now) {
        Ok(appended) if appended.duplicate => assert_eq!(log.high_watermark(), end),
        Ok(appended) => {
            assert_eq!(appended.base_offset, end);
            assert_eq!(log.high_watermark(), appended.last_offset + 1);
        }
        Err(_) => assert_eq!(log.high_watermark(), end, "a refused batch has left something"),
    }
}

/// What holds for every log.
fn check(log: &PartitionLog, entropy: &mut Entropy<'_>) {
    let (start, stable, end) = (log.log_start_offset(), log.last_stable_offset(), log.high_watermark());
    assert!(start <= end && stable <= end, "{start}, {stable}, {end}");
    let isolation = *entropy.pick(&[Isolation::ReadCommitted, Isolation::ReadUncommitted]);
    let from = start + entropy.below(usize::try_from(end - start).unwrap_or(0) + 1) as i64;
    let fetched =
        log.read(from, entropy.below(5_000), isolation, true).expect("an offset in the log can be read");
    let mut rest = fetched.records;
    while !rest.is_empty() {
        let header = BatchHeader::parse(&rest).expect("a read gives whole batches");
        header.verify(&rest).expect("what the log keeps has its checksum");
        assert!(header.last_offset() >= from);
        let _ = rest.split_to(header.size);
    }
    for spec in
        [OffsetSpec::Earliest, OffsetSpec::Latest, OffsetSpec::MaxTimestamp, OffsetSpec::Timestamp(NOW)]
    {
        let _ = log.offset_for(spec, isolation);
    }
    let _ = (log.producers(), log.available_bytes(from, isolation), log.end_offset_for_epoch(0));
}

/// A batch of some producer, often one that can be appended.
pub(super) fn batch(entropy: &mut Entropy<'_>) -> Vec<u8> {
    let count = 1 + entropy.below(4) as i32;
    let mut body = Vec::new();
    for delta in 0..count {
        let key = entropy.percent(90).then(|| [b'k', b'0' + entropy.below(8) as u8]);
        let value = entropy.percent(80).then(|| entropy.some_bytes(30));
        write_record(0, delta, key.as_ref().map(|key| &key[..]), value.as_deref(), &mut body);
    }
    let (code, compression) = *entropy.pick(&[
        (0, Compression::None),
        (0, Compression::None),
        (0, Compression::None),
        (1, Compression::Gzip),
        (2, Compression::Snappy),
        (3, Compression::Lz4),
        (5, Compression::None),
    ]);
    let mut body = compress(compression, body).unwrap_or_else(|_| vec![7; 10]);
    if entropy.percent(10) {
        entropy.damage(&mut body, 0);
    }
    let idempotent = entropy.percent(70);
    let header = BatchHeader {
        base_offset: 0,
        size: 0,
        leader_epoch: -1,
        crc: 0,
        attributes: code | if idempotent && entropy.percent(60) { 0x10 } else { 0 },
        last_offset_delta: count - 1,
        base_timestamp: NOW,
        max_timestamp: NOW,
        producer_id: if idempotent { *entropy.pick(&[0, 0, 0, 1, 2]) } else { -1 },
        producer_epoch: if idempotent { *entropy.pick(&[0, 0, 0, 1, 2]) } else { -1 },
        base_sequence: if idempotent { *entropy.pick(&[0, 0, 0, 1, 2, 3, 4, 8, i32::MAX]) } else { -1 },
        count,
    };
    let mut batch = header.encode(&body);
    if entropy.percent(15) {
        entropy.damage(&mut batch, 0);
        // A wrong checksum ends the look at it.
        if batch.len() > HEADER_SIZE && entropy.percent(80) {
            let crc = crc32c::crc32c(&batch[COVERED_FROM..]);
            batch[CRC_AT..COVERED_FROM].copy_from_slice(&crc.to_be_bytes());
        }
    }
    batch
}
