//! When a task closes its batch, and what becomes of it then (S2.4).

use std::sync::Arc;

use super::Task;
use crate::observe::names;
use crate::runtime::batch::{Building, ClosedBatch};
use crate::runtime::host;
use crate::task::Event;

impl Task {
    /// Positions that moved by an end-of-partition event alone are committed after a while.
    pub(super) fn notice_ends(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.reach_ends(&self.held);
        }
        if self.building.is_empty() && self.has_moved() {
            self.moved.get_or_insert_with(host::now);
        }
    }

    /// Positions are ahead of the committed ones, and no batch is on its way to commit others.
    fn has_moved(&self) -> bool {
        self.closed.is_empty() && self.is_ahead()
    }

    /// Positions are ahead of those that the last closed batch commits, or that are committed.
    fn is_ahead(&self) -> bool {
        let Some(reading) = &self.reading else { return false };
        match self.closed.back() {
            Some(batch) => reading.positions != batch.positions,
            None => reading
                .positions
                .iter()
                .zip(self.machine.committed())
                .any(|(now, committed)| Some(*now) != committed),
        }
    }

    /// True if it closed the batch.
    pub(super) fn close_if_due(&mut self) -> bool {
        if self.running.is_some() || !self.machine.may_compute() {
            return false;
        }
        let now = host::now();
        let may_commit = self.commit_due().is_none_or(|due| due <= now);
        let due = !self.building.is_empty() && self.machine.may_send() && may_commit;
        let idle = self.moved.is_some_and(|since| since + self.context.limits.idle_commit <= now)
            && self.has_moved();
        let close = !self.building.is_empty() && self.is_full() || due || idle;
        if close {
            self.close();
        }
        close
    }

    pub(super) fn close(&mut self) {
        let Some(reading) = &self.reading else { return };
        let reached = reading.positions.clone();
        let positions = reading.to_commit(self.building.is_empty());
        let outputs = std::mem::take(&mut self.spare_outputs);
        let building = std::mem::replace(&mut self.building, Building { outputs, ..Building::default() });
        let layer = self.close_layer();
        if let Some(timing) = &mut self.timing {
            timing.turns.closed();
        }
        let id = self.next_id;
        self.next_id += 1;
        names::batch_records(self.context.info.name, self.partition).record(building.records as f64);
        self.closed.push_back(Arc::new(ClosedBatch {
            id,
            outputs: building.outputs,
            positions: reached,
            layer: Arc::new(layer),
            records: building.records,
            fired: building.fired,
            page: None,
            env: building.env,
        }));
        self.moved = None;
        self.step(Event::Closed { id, positions });
    }

    /// After a stop: the last batch is closed once its round is done, and that is all.
    pub(super) fn drain_if_stopping(&mut self) {
        if !self.stopping || self.running.is_some() || self.machine.is_ended() {
            return;
        }
        if self.machine.is_live() && self.closed.len() < 2 && (!self.building.is_empty() || self.is_ahead()) {
            self.close();
        }
        if self.building.is_empty() && !self.is_ahead() {
            self.step(Event::Drained);
        }
    }
}
