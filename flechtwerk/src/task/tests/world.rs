//! A cluster with one partition, and two processes that may own its task. Every choice of the world (who goes on,
//! which fault happens) is taken from a stream of bytes, so that a history is its bytes.
//!
//! The stage's state is the number of records consumed, so a batch was computed on the right state exactly if
//! its base equals the position it starts from, and both equal what is committed.

use std::collections::VecDeque;

use crate::task::{
    Abort, BatchId, Command, CommittedInput, Config, Event, FIRST_POSITIONS, InputRange, Machine, Outcome,
    Stamp,
};

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    Nothing,
    /// The committed offsets are those of before the fence.
    OffsetsBeforeFence,
    /// A producer keeps working after another one was fenced in.
    NoFence,
    /// The store gets the state before the commit is known (the stamp after it: else the stamp would tell).
    StoreBeforeCommit,
    /// All owners write the same name.
    StampWithoutOwner,
    /// After a fence over something computed, whatever is committed is taken for what is known.
    NoStampsAfterFence,
    /// A store is reused whatever its stamp says.
    StaleStoreReused,
    /// The position that is committed is one too far.
    PositionTooFar,
}

/// Something that must never happen.
pub(super) type Violation = String;

struct Batch {
    id: BatchId,
    from: i64,
    /// The state it was computed on.
    base: i64,
    to: i64,
}

/// A process, as far as the task is concerned.
struct Process {
    machine: Option<Machine>,
    work: VecDeque<Command>,
    /// The epoch that its producer was given.
    epoch: Option<u64>,
    batches: Vec<Batch>,
    computed: i64,
    state: i64,
    next_id: BatchId,
    /// Survives the task: stamp and state.
    store: (Option<String>, i64),
    waiting: bool,
    stopping: bool,
    remembered: CommittedInput,
}

/// A commit that reached the broker late: it happens if its epoch is still current by then.
struct Late {
    epoch: u64,
    from: i64,
    base: i64,
    to: i64,
    stamp: Stamp,
}

pub(super) struct World {
    broken: Broken,
    epoch: u64,
    committed: CommittedInput,
    /// The state in the changelog.
    changelog: i64,
    /// Stamps of all transactions, in order.
    chain: Vec<Stamp>,
    late: Vec<Late>,
    input_end: i64,
    processes: [Process; 2],
    faults: bool,
    pub(super) commits: usize,
}

const FIRST_OFFSET: i64 = 5;

impl World {
    pub(super) fn new(broken: Broken) -> World {
        let process = || Process {
            machine: None,
            work: VecDeque::new(),
            epoch: None,
            batches: Vec::new(),
            computed: 0,
            state: 0,
            next_id: 1,
            store: (None, 0),
            waiting: false,
            stopping: false,
            remembered: CommittedInput::default(),
        };
        World {
            broken,
            epoch: 0,
            committed: CommittedInput::default(),
            changelog: FIRST_OFFSET,
            chain: Vec::new(),
            late: Vec::new(),
            input_end: 25,
            processes: [process(), process()],
            faults: true,
            commits: 0,
        }
    }

    /// Lets the world take one step, as the byte says.
    pub(super) fn step(&mut self, byte: u8) -> Result<(), Violation> {
        let index = usize::from(byte & 1);
        match (byte >> 1) % 32 {
            0 => self.event(index, Event::Revoked),
            1 => self.assign(index, true),
            2 => self.assign(index, false),
            3 => self.event(index, Event::Lost),
            4 => self.crash(index),
            5 => {
                self.processes[index].stopping = true;
                self.event(index, Event::Stop)
            }
            6 => self.apply_late(),
            7 if self.input_end < 60 => {
                self.input_end += 1;
                Ok(())
            }
            8..=10 => self.wait_over(index),
            11..=16 => self.compute(index, i64::from(byte >> 6) + 1),
            _ => self.work(index, byte >> 3),
        }
    }

    /// Ends all faults, gives the task to one process and checks that it gets through its input.
    pub(super) fn settle(&mut self) -> Result<(), Violation> {
        self.faults = false;
        self.late.clear();
        self.assign(1, false)?;
        while self.processes[1].machine.is_some() {
            self.event(1, Event::Lost)?;
        }
        for _ in 0..4000 {
            if self.processes[0].machine.is_none() {
                self.assign(0, true)?;
            }
            self.event(0, Event::Assigned { mine: true })?;
            self.wait_over(0)?;
            self.compute(0, 3)?;
            self.work(0, 0)?;
            if self.committed.offset == Some(self.input_end) && self.processes[0].work.is_empty() {
                return Ok(());
            }
        }
        Err(format!("stuck at {:?} of {}: {:?}", self.committed, self.input_end, self.processes[0].machine))
    }

    fn assign(&mut self, index: usize, mine: bool) -> Result<(), Violation> {
        let process = &mut self.processes[index];
        if process.machine.is_some() {
            return self.event(index, Event::Assigned { mine });
        }
        if !mine {
            return Ok(());
        }
        let config = Config { inputs: 1, changelog: Some("changelog".into()), start_latest: false };
        let (machine, commands) = Machine::new(config);
        process.machine = Some(machine);
        process.stopping = false;
        process.remembered = self.committed.clone();
        self.take(index, commands);
        Ok(())
    }

    /// SIGKILL: what was computed and the producer are gone, the store stays.
    fn crash(&mut self, index: usize) -> Result<(), Violation> {
        let process = &mut self.processes[index];
        process.machine = None;
        process.work.clear();
        process.batches.clear();
        process.epoch = None;
        process.waiting = false;
        Ok(())
    }

    fn event(&mut self, index: usize, event: Event) -> Result<(), Violation> {
        let Some(machine) = &mut self.processes[index].machine else { return Ok(()) };
        let commands = machine.step(event);
        self.take(index, commands);
        Ok(())
    }

    fn take(&mut self, index: usize, commands: Vec<Command>) {
        for command in commands {
            let process = &mut self.processes[index];
            match command {
                Command::Wait => process.waiting = true,
                Command::Run { positions } => {
                    process.computed = positions[0];
                    process.state = process.store.1;
                }
                Command::Discard { keep } => process.batches.retain(|batch| Some(batch.id) == keep),
                Command::Warn(_) => {}
                // The process is not modelled to stop: a new task may be assigned to it.
                Command::Fail(_) | Command::End { .. } => {
                    process.machine = None;
                    process.work.clear();
                    process.batches.clear();
                    process.epoch = None;
                    process.waiting = false;
                }
                other => process.work.push_back(other),
            }
        }
    }

    fn wait_over(&mut self, index: usize) -> Result<(), Violation> {
        if std::mem::take(&mut self.processes[index].waiting) {
            return self.event(index, Event::Waited);
        }
        Ok(())
    }

    fn compute(&mut self, index: usize, records: i64) -> Result<(), Violation> {
        let end = self.input_end;
        let process = &mut self.processes[index];
        let Some(machine) = &process.machine else { return Ok(()) };
        if process.stopping {
            return self.event(index, Event::Drained);
        }
        if !machine.may_compute() || process.computed >= end {
            return Ok(());
        }
        let from = process.computed;
        let to = (from + records).min(end);
        let id = process.next_id;
        process.next_id += 1;
        process.batches.push(Batch { id, from, base: process.state, to });
        process.computed = to;
        process.state += to - from;
        self.event(index, Event::Closed { id, positions: vec![to] })
    }

    fn apply_late(&mut self) -> Result<(), Violation> {
        match self.late.pop() {
            Some(late) if late.epoch == self.epoch => self.commit(late.from, late.base, late.to, late.stamp),
            _ => Ok(()),
        }
    }

    /// A transaction becomes visible. The one place where exactly once is checked.
    fn commit(&mut self, from: i64, base: i64, to: i64, stamp: Stamp) -> Result<(), Violation> {
        let expected = self.committed.offset.unwrap_or(FIRST_OFFSET);
        if from != expected {
            return Err(format!("a batch from {from} was committed at {expected}"));
        }
        if base != self.changelog {
            return Err(format!(
                "a batch at {from} was computed on state {base}, committed is {}",
                self.changelog
            ));
        }
        let last = self.chain.last().map_or(0, |stamp| stamp.counter);
        if stamp.counter != last + 1 {
            return Err(format!("the chain of stamps breaks: {} follows {last}", stamp.counter));
        }
        let shift = i64::from(self.broken == Broken::PositionTooFar && to > from);
        self.committed = CommittedInput { offset: Some(to + shift), metadata: stamp.to_string() };
        self.changelog = base + (to - from);
        self.chain.push(stamp);
        self.commits += 1;
        Ok(())
    }

    /// The process's thread does its next piece of work.
    fn work(&mut self, index: usize, fault: u8) -> Result<(), Violation> {
        let fault = if self.faults { fault } else { 0 };
        let Some(command) = self.processes[index].work.pop_front() else { return Ok(()) };
        match command {
            Command::Fence => {
                if fault == 7 {
                    self.processes[index].epoch = None;
                    return self.event(index, Event::FenceLost { error: "fenced".into() });
                }
                if self.broken != Broken::NoFence {
                    self.epoch += 1;
                }
                self.processes[index].epoch = Some(self.epoch);
                let owner = match self.broken {
                    Broken::StampWithoutOwner => "same".into(),
                    _ => format!("owner{index}e{}", self.epoch),
                };
                self.event(index, Event::Fenced { owner })
            }
            Command::DropProducer => {
                self.processes[index].epoch = None;
                Ok(())
            }
            Command::ReadOffsets => {
                let live = self.processes[index].machine.as_ref().is_some_and(Machine::is_live);
                let answer = match self.broken {
                    Broken::OffsetsBeforeFence if !live => self.processes[index].remembered.clone(),
                    Broken::NoStampsAfterFence if live => {
                        let known = self.processes[index].machine.as_ref().and_then(|m| m.committed()[0]);
                        CommittedInput {
                            offset: known,
                            metadata: self.processes[index].remembered.metadata.clone(),
                        }
                    }
                    _ => self.committed.clone(),
                };
                self.processes[index].remembered = answer.clone();
                self.event(index, Event::Offsets(vec![answer]))
            }
            Command::ReadChangelogEnd => self.event(index, Event::ChangelogEnd(self.changelog)),
            Command::OpenStore { wiped } => {
                if fault == 3 {
                    return self.event(index, Event::StoreFailed { error: "disk".into() });
                }
                if wiped {
                    self.processes[index].store = (None, FIRST_OFFSET);
                }
                let stamp = match self.broken {
                    Broken::StaleStoreReused if self.processes[index].store.0.is_some() => {
                        Some(self.committed.metadata.clone())
                    }
                    _ => self.processes[index].store.0.clone(),
                };
                self.event(index, Event::StoreOpened { stamp })
            }
            Command::Restore { stamp, .. } => {
                if fault == 3 {
                    return self.event(index, Event::StoreFailed { error: "disk".into() });
                }
                self.processes[index].store = (stamp, self.changelog);
                self.event(index, Event::Restored { empty: self.changelog == FIRST_OFFSET })
            }
            Command::ReadRanges => {
                let range =
                    InputRange { low: FIRST_OFFSET, stable: self.input_end, high: self.input_end + 1 };
                self.event(index, Event::Ranges(vec![range]))
            }
            Command::Send { id, stamp, positions, .. } => self.send(index, id, stamp, positions[0], fault),
            Command::Apply { id, stamp } => {
                if fault == 3 {
                    return self.event(index, Event::StoreFailed { error: "disk".into() });
                }
                let process = &mut self.processes[index];
                let state = process
                    .batches
                    .iter()
                    .find(|batch| batch.id == id)
                    .map(|batch| batch.base + batch.to - batch.from);
                process.batches.retain(|batch| batch.id != id);
                process.store = (Some(stamp.to_string()), state.unwrap_or(process.store.1));
                self.event(index, Event::Applied { id })
            }
            other => Err(format!("{other:?} is no work of the thread")),
        }
    }

    fn send(&mut self, index: usize, id: BatchId, stamp: Stamp, to: i64, fault: u8) -> Result<(), Violation> {
        let process = &mut self.processes[index];
        let (from, base) = match process.batches.iter().find(|batch| batch.id == id) {
            Some(batch) => (batch.from, batch.base),
            None if id == FIRST_POSITIONS => (to, process.store.1),
            None => return Err(format!("batch {id} was forgotten and sent")),
        };
        if self.broken == Broken::StoreBeforeCommit {
            process.store.1 = base + to - from;
        }
        let Some(epoch) = process.epoch else {
            let outcome = Outcome::Dead { fenced: false, error: "gone".into() };
            return self.event(index, Event::Sent { id, outcome });
        };
        if epoch != self.epoch {
            let error = "fenced".into();
            let outcome = match fault & 1 {
                0 => Outcome::Dead { fenced: true, error },
                _ => Outcome::Unknown { fenced: true, error },
            };
            return self.event(index, Event::Sent { id, outcome });
        }
        let why = || Abort::Other("timed out".into());
        let outcome = match fault {
            8 => Outcome::Aborted { why: Abort::Generation, suspect: false },
            9 => Outcome::Aborted { why: Abort::Generation, suspect: true },
            10 => Outcome::Aborted { why: why(), suspect: false },
            11 => Outcome::Dead { fenced: false, error: "dead".into() },
            12 => Outcome::Unknown { fenced: false, error: "never applied".into() },
            13 | 14 => {
                self.late.push(Late { epoch, from, base, to, stamp });
                Outcome::Unknown { fenced: false, error: "on its way".into() }
            }
            15 | 16 => {
                self.commit(from, base, to, stamp)?;
                Outcome::Unknown { fenced: false, error: "answer lost".into() }
            }
            17 | 18 => {
                self.commit(from, base, to, stamp)?;
                Outcome::Committed { suspect: true }
            }
            _ => {
                self.commit(from, base, to, stamp)?;
                Outcome::Committed { suspect: false }
            }
        };
        self.event(index, Event::Sent { id, outcome })
    }
}
