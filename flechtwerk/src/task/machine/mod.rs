//! The life of one task as a state machine: `step(event)` gives commands, and nothing here does I/O, reads a clock
//! or waits. Drivers carry the commands out and answer with events, so that every interleaving can be tested.
//!
//! The order of the start (S4) is the correctness: fence, then committed offsets, then changelog end, then
//! restore, then read. A task that loses its producer while it has computed something settles by the stamps
//! (S3.7) instead of starting anew, and goes on where they are what they must be.

mod start;

use crate::task::event::{
    Abort, BatchId, Command, CommittedInput, Event, InputRange, Outcome, Stop as Failure, Warning,
};
use crate::task::stamp::Stamp;

/// The batch that commits the resolved start of new inputs, before anything is read.
pub const FIRST_POSITIONS: BatchId = 0;

/// What a machine must know of its task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Number of inputs.
    pub inputs: usize,
    /// Topic id of the changelog; `None` for a stage without state.
    pub changelog: Option<String>,
    /// Inputs without a committed offset start at the end instead of the beginning.
    pub start_latest: bool,
}

/// Where the task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// For a new assignment or one heartbeat interval, then the fence.
    Waiting,
    Fencing,
    ReadingOffsets,
    ReadingEnd,
    OpeningStore,
    Restoring,
    ReadingRanges,
    /// The resolved start positions are being committed.
    Starting,
    Running,
    /// Only a commit in flight is still awaited.
    Ending,
    Ended,
}

/// How far a batch that was handed over is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Progress {
    Sending,
    /// Aborted because the group moved on: to be sent again.
    Redo,
    /// Its producer is gone: the stamps decide.
    Unsettled,
    /// Committed, being written to the store.
    Applying,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InFlight {
    id: BatchId,
    positions: Vec<i64>,
    stamp: Stamp,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stopping {
    No,
    /// Commit what was computed; `drained`: the driver has closed its last batch.
    Clean {
        drained: bool,
    },
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    config: Config,
    phase: Phase,
    /// A rebalance has begun and its assignment is not known yet.
    pending: bool,
    stopping: Stopping,
    /// Something is computed, or may be: from `Run` to `Discard`.
    live: bool,
    owner: String,
    /// Counter of the last committed transaction.
    counter: u64,
    /// What this task knows to be committed.
    known: Vec<CommittedInput>,
    in_flight: Option<InFlight>,
    ready: Option<(BatchId, Vec<i64>)>,
    /// End of the changelog partition.
    end: i64,
    store_failed: bool,
    /// The next opening wipes.
    wipe: bool,
}

impl Machine {
    /// A task that was just assigned, and its first commands.
    pub fn new(config: Config) -> (Machine, Vec<Command>) {
        let mut machine = Machine {
            config,
            phase: Phase::Waiting,
            pending: false,
            stopping: Stopping::No,
            live: false,
            owner: String::new(),
            counter: 0,
            known: Vec::new(),
            in_flight: None,
            ready: None,
            end: 0,
            store_failed: false,
            wipe: false,
        };
        let mut out = Vec::new();
        machine.fence(&mut out);
        (machine, out)
    }

    /// True while the driver may take records and compute: it reads, and has no closed batch waiting.
    pub fn may_compute(&self) -> bool {
        self.live && self.ready.is_none() && self.phase != Phase::Ending && self.stopping == Stopping::No
    }

    /// True while a closed batch can be handed over: none waits, and what is computed counts.
    pub fn may_close(&self) -> bool {
        self.live && self.ready.is_none() && self.phase != Phase::Ending
    }

    /// True if a batch closed now would be sent at once.
    pub fn may_send(&self) -> bool {
        self.phase == Phase::Running && self.in_flight.is_none() && self.ready.is_none()
    }

    /// True from the first reading until everything computed is discarded.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// True after [`Command::End`] or [`Command::Fail`].
    pub fn is_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The positions that are known to be committed, one for each input; empty before they were read.
    pub fn committed(&self) -> Vec<Option<i64>> {
        self.known.iter().map(|input| input.offset).collect()
    }

    /// Takes an event and says what is to be done.
    pub fn step(&mut self, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        if self.phase == Phase::Ended {
            return out;
        }
        match event {
            Event::Assigned { mine: true } => self.assigned(&mut out),
            Event::Assigned { mine: false } | Event::Halt => self.leave(&mut out),
            Event::Revoked => self.pending = true,
            Event::Lost => self.end(false, &mut out),
            Event::Stop => self.stop(&mut out),
            Event::Drained => {
                if self.stopping != Stopping::No {
                    self.stopping = Stopping::Clean { drained: true };
                }
                self.end_if_drained(&mut out);
            }
            Event::Waited if self.phase == Phase::Waiting && !self.pending => self.fence(&mut out),
            Event::Fenced { owner } if self.phase == Phase::Fencing => {
                self.owner = owner;
                self.phase = Phase::ReadingOffsets;
                out.push(Command::ReadOffsets);
            }
            Event::FenceLost { .. } if self.phase == Phase::Fencing => self.wait(&mut out),
            Event::Offsets(committed) if self.phase == Phase::ReadingOffsets => {
                self.offsets(committed, &mut out)
            }
            Event::ChangelogEnd(end) if self.phase == Phase::ReadingEnd => {
                self.end = end;
                self.open_store(&mut out);
            }
            Event::StoreOpened { stamp } if self.phase == Phase::OpeningStore => {
                self.store_opened(stamp, &mut out)
            }
            Event::Restored { empty } if self.phase == Phase::Restoring => {
                if !empty && self.known.iter().all(|input| input.offset.is_none()) {
                    self.fail(Failure::StateWithoutOffsets, &mut out);
                } else {
                    self.read_ranges(&mut out);
                }
            }
            Event::StoreFailed { error } => self.store_failed(error, &mut out),
            Event::Ranges(ranges) if self.phase == Phase::ReadingRanges => self.ranges(&ranges, &mut out),
            Event::Closed { id, positions } if self.live => {
                self.ready = Some((id, positions));
                self.send_ready(&mut out);
            }
            Event::Sent { id, outcome } => self.sent(id, outcome, &mut out),
            Event::Applied { id } => self.applied(id, &mut out),
            // Answers to commands that something has overtaken.
            Event::Waited
            | Event::Fenced { .. }
            | Event::FenceLost { .. }
            | Event::Offsets(_)
            | Event::ChangelogEnd(_)
            | Event::StoreOpened { .. }
            | Event::Restored { .. }
            | Event::Ranges(_)
            | Event::Closed { .. } => {}
        }
        out
    }

    // ---- transactions

    fn send(&mut self, id: BatchId, positions: Vec<i64>, paced: bool, out: &mut Vec<Command>) {
        let stamp = Stamp {
            owner: self.owner.clone(),
            counter: self.counter + 1,
            changelog: self.config.changelog.clone(),
        };
        out.push(Command::Send { id, stamp: stamp.clone(), positions: positions.clone(), paced });
        self.in_flight = Some(InFlight { id, positions, stamp, progress: Progress::Sending });
    }

    fn send_ready(&mut self, out: &mut Vec<Command>) {
        if self.phase == Phase::Running
            && self.in_flight.is_none()
            && let Some((id, positions)) = self.ready.take()
        {
            self.send(id, positions, false, out);
        }
    }

    /// The same batch again, under the present owner.
    fn resend(&mut self, paced: bool, out: &mut Vec<Command>) {
        if let Some(batch) = self.in_flight.take() {
            self.send(batch.id, batch.positions, paced, out);
        }
    }

    fn sent(&mut self, id: BatchId, outcome: Outcome, out: &mut Vec<Command>) {
        let Some(batch) = self.in_flight.as_mut().filter(|b| b.id == id && b.progress == Progress::Sending)
        else {
            return;
        };
        if self.phase == Phase::Ending && !matches!(outcome, Outcome::Committed { .. }) {
            return self.end(false, out);
        }
        match outcome {
            Outcome::Committed { suspect } => {
                self.committed_in_flight(out);
                if suspect && self.phase != Phase::Ending {
                    self.renew_producer(out);
                }
            }
            Outcome::Aborted { why: Abort::Generation, suspect } => {
                batch.progress = Progress::Redo;
                if suspect {
                    self.renew_producer(out);
                } else if !self.pending {
                    self.resend(true, out);
                }
            }
            Outcome::Aborted { why: Abort::Other(why), .. } => self.anew(why, out),
            Outcome::Dead { fenced, error } | Outcome::Unknown { fenced, error } => {
                if !self.live {
                    return self.anew(error, out);
                }
                batch.progress = Progress::Unsettled;
                if fenced {
                    self.wait(out);
                } else {
                    self.fence(out);
                }
            }
        }
    }

    /// The batch in flight is committed: it is the truth now, and goes into the store.
    fn committed_in_flight(&mut self, out: &mut Vec<Command>) {
        let Some(batch) = &mut self.in_flight else { return };
        batch.progress = Progress::Applying;
        self.counter = batch.stamp.counter;
        self.known = stamped(&batch.positions, &batch.stamp);
        out.push(Command::Apply { id: batch.id, stamp: batch.stamp.clone() });
    }

    /// A request was sent and never answered: never begin another transaction on that producer (S3.7). What is
    /// computed stands, and the stamps are read after the fence.
    fn renew_producer(&mut self, out: &mut Vec<Command>) {
        if !self.live && self.in_flight.as_ref().is_none_or(|b| b.progress != Progress::Applying) {
            self.in_flight = None;
        }
        self.fence(out);
    }

    fn applied(&mut self, id: BatchId, out: &mut Vec<Command>) {
        let Some(batch) = self.in_flight.take_if(|b| b.id == id && b.progress == Progress::Applying) else {
            return;
        };
        match self.phase {
            Phase::Ending => self.end(true, out),
            Phase::Starting => self.run(batch.positions, out),
            _ => {
                self.send_ready(out);
                self.end_if_drained(out);
            }
        }
    }

    // ---- assignment and end

    fn assigned(&mut self, out: &mut Vec<Command>) {
        self.pending = false;
        if self.phase == Phase::Waiting {
            self.fence(out);
        } else if self.in_flight.as_ref().is_some_and(|b| b.progress == Progress::Redo)
            && matches!(self.phase, Phase::Running | Phase::Starting)
        {
            self.resend(false, out);
        }
    }

    fn leave(&mut self, out: &mut Vec<Command>) {
        let awaited = self
            .in_flight
            .as_ref()
            .is_some_and(|b| matches!(b.progress, Progress::Sending | Progress::Applying));
        self.discard_computed(self.in_flight.as_ref().map(|batch| batch.id).filter(|_| awaited), out);
        if awaited {
            self.phase = Phase::Ending;
        } else {
            self.end(false, out);
        }
    }

    fn stop(&mut self, out: &mut Vec<Command>) {
        if self.live {
            if self.stopping == Stopping::No {
                self.stopping = Stopping::Clean { drained: false };
            }
        } else {
            self.leave(out);
        }
    }

    fn end_if_drained(&mut self, out: &mut Vec<Command>) {
        if self.stopping == (Stopping::Clean { drained: true })
            && self.in_flight.is_none()
            && self.ready.is_none()
        {
            self.end(true, out);
        }
    }

    /// From the fence on again, after a moment, with nothing kept.
    fn anew(&mut self, why: String, out: &mut Vec<Command>) {
        self.discard(out);
        if self.stopping != Stopping::No {
            return self.end(false, out);
        }
        out.push(Command::Warn(Warning::Anew { why }));
        self.wait(out);
    }

    /// Forgets what was computed and what was handed over.
    fn discard(&mut self, out: &mut Vec<Command>) {
        self.discard_computed(None, out);
        self.in_flight = None;
    }

    fn discard_computed(&mut self, keep: Option<BatchId>, out: &mut Vec<Command>) {
        if self.live {
            out.push(Command::Discard { keep });
        }
        self.live = false;
        self.ready = None;
    }

    fn end(&mut self, clean: bool, out: &mut Vec<Command>) {
        self.discard(out);
        self.phase = Phase::Ended;
        out.push(Command::End { clean });
    }

    fn fail(&mut self, why: Failure, out: &mut Vec<Command>) {
        self.discard(out);
        self.phase = Phase::Ended;
        out.push(Command::Fail(why));
    }
}

/// What the group has committed for every input once this batch is.
fn stamped(positions: &[i64], stamp: &Stamp) -> Vec<CommittedInput> {
    let metadata = stamp.to_string();
    positions
        .iter()
        .map(|offset| CommittedInput { offset: Some(*offset), metadata: metadata.clone() })
        .collect()
}
