//! How much a task takes for its next round: as much as its batch has room for (S2.4).

use super::{Failure, RawRecord, Task};

impl Task {
    pub(super) fn is_full(&self) -> bool {
        self.building.size() >= self.context.limits.max_poll_records
            || self.bytes() >= self.context.limits.max_batch_bytes
            // However long it has to wait until it can be sent, its code is not to be taken for one that hangs (S2.8).
            || self.building.spent >= self.context.limits.max_batch_time / 2
    }

    /// Inputs, buffered outputs and changed state together.
    pub(super) fn bytes(&self) -> usize {
        self.building.input_bytes + self.building.outputs.bytes.len() + self.overlay.building_bytes()
    }

    pub(super) fn may_take(&self) -> bool {
        self.running.is_none() && self.reading.is_some() && self.machine.may_compute() && !self.is_full()
    }

    /// Records, or keys with timers, that the next round may have.
    pub(super) fn room(&self) -> usize {
        self.context.limits.max_poll_records.saturating_sub(self.building.size()).min(self.round_limit)
    }

    pub(super) fn take(&mut self) -> Result<Vec<RawRecord>, Failure> {
        let room = self.room();
        if !self.held.is_empty() {
            return Ok(self.held.take(room));
        }
        let room_bytes = self.context.limits.max_batch_bytes - self.bytes();
        let spare = std::mem::take(&mut self.spare_records);
        match &mut self.reading {
            Some(reading) => reading.take(&self.context, self.partition, room, room_bytes, spare),
            None => Ok(Vec::new()),
        }
    }
}
