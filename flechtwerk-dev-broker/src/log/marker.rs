//! Control batches: the marker that ends a transaction in a partition.

use super::batch::{BatchError, BatchHeader, MARKER_ATTRIBUTES};
use super::records::{Records, write_record};

/// How a transaction ended, as its marker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Committed, or aborted.
    pub commit: bool,
    /// The epoch of the coordinator that wrote it.
    pub coordinator_epoch: i32,
}

impl Marker {
    /// Reads the marker of a control batch; `None` if compaction has emptied it, or if it is of another kind.
    pub fn read(header: &BatchHeader, batch: &[u8]) -> Result<Option<Self>, BatchError> {
        const DAMAGED: BatchError = BatchError::Corrupt("its marker is damaged");
        let records = Records::open(header, batch)?;
        let Some(record) = records.iter().next().transpose()? else { return Ok(None) };
        let key = record.key.and_then(|key| key.first_chunk::<4>()).ok_or(DAMAGED)?;
        let commit = match key {
            [_, _, 0, 0] => false,
            [_, _, 0, 1] => true,
            _ => return Ok(None),
        };
        let epoch = record.value.and_then(|value| value.get(2..)).and_then(|value| value.first_chunk::<4>());
        Ok(Some(Self { commit, coordinator_epoch: i32::from_be_bytes(*epoch.ok_or(DAMAGED)?) }))
    }

    /// Writes the control batch with this marker.
    pub(crate) fn encode(
        &self,
        base_offset: i64,
        leader_epoch: i32,
        producer_id: i64,
        producer_epoch: i16,
        now: i64,
    ) -> Vec<u8> {
        let key = [0, 0, 0, u8::from(self.commit)];
        let mut value = vec![0, 0];
        value.extend_from_slice(&self.coordinator_epoch.to_be_bytes());
        let mut body = Vec::new();
        write_record(0, 0, Some(&key), Some(&value), &mut body);
        let header = BatchHeader {
            base_offset,
            size: 0,
            leader_epoch,
            crc: 0,
            attributes: MARKER_ATTRIBUTES,
            last_offset_delta: 0,
            base_timestamp: now,
            max_timestamp: now,
            producer_id,
            producer_epoch,
            base_sequence: -1,
            count: 1,
        };
        header.encode(&body)
    }
}
