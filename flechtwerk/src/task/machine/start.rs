//! The start of a task (S4): the order of these steps is the correctness. The same way leads back after a fence
//! over something that is computed already, where the stamps decide what counts (S3.7).

use super::{
    Command, CommittedInput, FIRST_POSITIONS, InputRange, Machine, Phase, Progress, Stopping, stamped,
};
use crate::task::event::{Stop as Failure, Warning};
use crate::task::stamp::{RESETTING, Stamp};

impl Machine {
    /// Fences, unless a rebalance is under way: only the assignment that comes out of it may ask for one (S4.7).
    pub(super) fn fence(&mut self, out: &mut Vec<Command>) {
        if self.pending {
            self.phase = Phase::Waiting;
            out.push(Command::DropProducer);
        } else {
            self.phase = Phase::Fencing;
            out.push(Command::Fence);
        }
    }

    pub(super) fn wait(&mut self, out: &mut Vec<Command>) {
        self.phase = Phase::Waiting;
        out.push(Command::DropProducer);
        out.push(Command::Wait);
    }

    pub(super) fn offsets(&mut self, committed: Vec<CommittedInput>, out: &mut Vec<Command>) {
        debug_assert_eq!(committed.len(), self.config.inputs);
        if committed.iter().any(|input| input.metadata == RESETTING) {
            return self.fail(Failure::Resetting, out);
        }
        if !self.live {
            return self.adopt(committed, out);
        }
        let committed = if flawed!(NoStampAfterFence) { self.known.clone() } else { committed };
        let batch = self.in_flight.as_ref().filter(|batch| batch.progress == Progress::Unsettled);
        let done = batch.is_some_and(|batch| committed == stamped(&batch.positions, &batch.stamp));
        if done && !flawed!(SentAgain) {
            // The batch of unknown outcome was committed.
            self.phase = Phase::Running;
            self.committed_in_flight(out);
        } else if committed == self.known || done {
            // Nothing has happened since: whatever was handed over and is not committed goes out again.
            self.phase = Phase::Running;
            match self.in_flight.as_ref().map(|batch| batch.progress) {
                Some(Progress::Applying) => {}
                Some(_) => self.resend(false, out),
                None => self.send_ready(out),
            }
        } else {
            // Another owner wrote.
            self.discard(out);
            out.push(Command::Warn(Warning::Anew { why: "another owner has committed in between".into() }));
            if self.stopping == Stopping::No { self.adopt(committed, out) } else { self.end(false, out) }
        }
    }

    /// Takes over what is committed as the truth to start from.
    fn adopt(&mut self, committed: Vec<CommittedInput>, out: &mut Vec<Command>) {
        let stamps: Vec<Stamp> = committed.iter().filter_map(|input| Stamp::parse(&input.metadata)).collect();
        self.counter = stamps.iter().map(|stamp| stamp.counter).max().unwrap_or(0);
        self.known = committed;
        let Some(changelog) = &self.config.changelog else {
            return self.read_ranges(out);
        };
        if let Some(named) =
            stamps.iter().filter_map(|s| s.changelog.as_ref()).find(|named| *named != changelog)
        {
            let named = named.clone();
            return self.fail(Failure::OtherChangelog { named }, out);
        }
        if stamps.iter().any(|stamp| stamp.changelog.is_none()) {
            out.push(Command::Warn(Warning::StateAdded));
        }
        self.phase = Phase::ReadingEnd;
        out.push(Command::ReadChangelogEnd);
    }

    pub(super) fn open_store(&mut self, out: &mut Vec<Command>) {
        self.phase = Phase::OpeningStore;
        out.push(Command::OpenStore { wiped: self.wipe });
        self.wipe = false;
    }

    /// Reuses the store only where every input carries its stamp: then nothing has happened since (S4.8).
    pub(super) fn store_opened(&mut self, stamp: Option<String>, out: &mut Vec<Command>) {
        let common = self.common_stamp();
        if stamp.is_some() && (stamp == common || flawed!(StaleStore)) {
            self.read_ranges(out);
        } else {
            self.phase = Phase::Restoring;
            out.push(Command::Restore { end: self.end, stamp: common });
        }
    }

    /// The one stamp that all inputs carry, if there is one.
    fn common_stamp(&self) -> Option<String> {
        let first = &self.known.first()?.metadata;
        Stamp::parse(first)?;
        self.known.iter().all(|input| input.metadata == *first).then(|| first.clone())
    }

    pub(super) fn store_failed(&mut self, error: String, out: &mut Vec<Command>) {
        if self.store_failed {
            return self.fail(Failure::Store { error }, out);
        }
        self.store_failed = true;
        self.wipe = true;
        out.push(Command::Warn(Warning::StoreRebuilt { error }));
        match self.phase {
            Phase::OpeningStore | Phase::Restoring => self.open_store(out),
            Phase::Ending => self.end(false, out),
            _ if self.stopping != Stopping::No => self.end(false, out),
            // Whoever was fenced does not fence back at once, whatever else goes wrong (S4.7b).
            Phase::Waiting => self.discard(out),
            _ => {
                self.discard(out);
                self.fence(out);
            }
        }
    }

    pub(super) fn read_ranges(&mut self, out: &mut Vec<Command>) {
        self.phase = Phase::ReadingRanges;
        out.push(Command::ReadRanges);
    }

    pub(super) fn ranges(&mut self, ranges: &[InputRange], out: &mut Vec<Command>) {
        debug_assert_eq!(ranges.len(), self.config.inputs);
        let mut positions = Vec::with_capacity(ranges.len());
        let mut new = Vec::new();
        for (input, range) in ranges.iter().enumerate() {
            match self.known[input].offset {
                Some(offset) if offset < range.low || offset > range.high => {
                    return self.fail(Failure::OutOfRange { input, offset, range: *range }, out);
                }
                Some(offset) => positions.push(offset),
                None => {
                    new.push(input);
                    positions.push(if self.config.start_latest { range.stable } else { range.low });
                }
            }
        }
        if new.is_empty() {
            return self.run(positions, out);
        }
        if new.len() < ranges.len() {
            out.push(Command::Warn(Warning::NewInputs(new)));
        }
        self.phase = Phase::Starting;
        self.send(FIRST_POSITIONS, positions, false, out);
    }

    pub(super) fn run(&mut self, positions: Vec<i64>, out: &mut Vec<Command>) {
        self.phase = Phase::Running;
        self.live = true;
        out.push(Command::Run { positions });
    }
}
