//! The small model, searched whole: two owners, one partition, two records, and every fault at every step of the task state
//! machine, up to a number of fences. Not one history at random but all of them; a state that was seen is not looked at again.
//!
//! The machine is the real one. The cluster around it is as small as can be: committed offsets with their stamp, one number that
//! stands for the state in the changelog, an epoch that fences, and commits that arrive late.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use flechtwerk::simulation::{
    Abort, BatchId, Command, CommittedInput, Config, Event, FIRST_POSITIONS, InputRange, Machine, Outcome,
    Stamp,
};
use hashbrown::{DefaultHashBuilder, HashSet};

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// States from which the work was carried to its end, faults left out, all of which were.
    pub ends: usize,
    /// Nothing was left to look at: all histories were searched.
    pub complete: bool,
}

/// Commits on their way at a time.
const LATE: usize = 1;

#[derive(Clone, Hash, PartialEq, Eq)]
struct Batch {
    id: BatchId,
    from: i64,
    base: i64,
    to: i64,
}

#[derive(Clone, Default, Hash, PartialEq, Eq)]
struct Owner {
    machine: Option<Machine>,
    work: VecDeque<Command>,
    epoch: Option<u64>,
    batches: Vec<Batch>,
    computed: i64,
    state: i64,
    store: (Option<String>, i64),
    waiting: bool,
}

#[derive(Clone, Hash, PartialEq, Eq)]
struct Late {
    epoch: u64,
    batch: Batch,
    stamp: Stamp,
}

#[derive(Clone, Hash, PartialEq, Eq)]
struct World {
    records: i64,
    epoch: u64,
    committed: CommittedInput,
    /// The state in the changelog.
    changelog: i64,
    counter: u64,
    late: Vec<Late>,
    owners: [Owner; 2],
}

/// A step of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Assign(bool),
    Revoke,
    Lose,
    Crash,
    Waited,
    Compute(i64),
    /// The next piece of work, with what comes of it.
    Work(u8),
    Late,
}

const STEPS: [Step; 20] = [
    Step::Work(0),
    Step::Work(1),
    Step::Work(2),
    Step::Work(3),
    Step::Work(4),
    Step::Work(5),
    Step::Work(6),
    Step::Work(7),
    Step::Work(8),
    Step::Work(9),
    Step::Work(10),
    Step::Compute(1),
    Step::Compute(2),
    Step::Waited,
    Step::Assign(true),
    Step::Assign(false),
    Step::Revoke,
    Step::Lose,
    Step::Crash,
    Step::Late,
];

type Violation = String;

/// Searches all histories with at most this many fences, over so many records, the shortest ones first; not beyond so many states.
///
/// # Errors
///
/// The first history found that breaks something, step by step.
pub fn search(fences: u64, records: i64, most: usize) -> Result<Found, Violation> {
    let begin = World {
        records,
        epoch: 0,
        committed: CommittedInput::default(),
        changelog: 0,
        counter: 0,
        late: Vec::new(),
        owners: Default::default(),
    };
    let hasher = DefaultHashBuilder::default();
    let mut seen: HashSet<u64> = HashSet::new();
    seen.insert(begin.print(&hasher));
    // Each state's way to it: the one before, and the step.
    let mut ways: Vec<(usize, usize, Step)> = vec![(0, 0, Step::Late)];
    let mut open: VecDeque<(usize, World)> = VecDeque::from([(0, begin)]);
    let mut found = Found { states: 1, steps: 0, ends: 0, complete: true };
    while let Some((place, world)) = open.pop_front() {
        if found.states >= most {
            found.complete = false;
            break;
        }
        for owner in 0..2 {
            for step in STEPS {
                let mut next = world.clone();
                match next.step(owner, step, fences) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(what) => return Err(way(&ways, place, owner, step, &what)),
                }
                found.steps += 1;
                if seen.insert(next.print(&hasher)) {
                    found.states += 1;
                    let index = ways.len();
                    ways.push((place, owner, step));
                    if index.is_multiple_of(8) {
                        found.ends += 1;
                        next.clone().settle().map_err(|what| way(&ways, place, owner, step, &what))?;
                    }
                    open.push_back((index, next));
                }
            }
        }
    }
    Ok(found)
}

fn way(ways: &[(usize, usize, Step)], mut place: usize, owner: usize, step: Step, what: &str) -> String {
    let mut steps = vec![format!("owner {owner}: {step:?}")];
    while place > 0 {
        let (before, owner, step) = ways[place];
        steps.push(format!("owner {owner}: {step:?}"));
        place = before;
    }
    steps.reverse();
    format!("{}\n{what}", steps.join("\n"))
}

impl World {
    /// What tells states apart. Which owner is which does not matter.
    fn print(&self, hasher: &DefaultHashBuilder) -> u64 {
        let World { records: _, epoch, committed, changelog, counter, late, owners } = self;
        let rest = hasher.hash_one((epoch, committed, changelog, counter, late));
        let each = owners.each_ref().map(|owner| hasher.hash_one(owner));
        hasher.hash_one((rest, each[0].min(each[1]), each[0].max(each[1])))
    }

    /// False: the step is not possible here.
    fn step(&mut self, owner: usize, step: Step, fences: u64) -> Result<bool, Violation> {
        let one = &mut self.owners[owner];
        match step {
            Step::Assign(mine) => match &one.machine {
                Some(_) => self.event(owner, Event::Assigned { mine }),
                None if mine && self.epoch < fences => self.begin(owner),
                None => return Ok(false),
            },
            Step::Late => {
                // They belong to nobody.
                if owner > 0 || self.late.is_empty() {
                    return Ok(false);
                }
                let late = self.late.remove(0);
                if late.epoch == self.epoch {
                    self.commit(&late.batch, &late.stamp)?;
                }
            }
            _ if one.machine.is_none() => return Ok(false),
            Step::Revoke => self.event(owner, Event::Revoked),
            Step::Lose => self.event(owner, Event::Lost),
            Step::Crash => self.end(owner),
            Step::Waited => {
                if !std::mem::take(&mut one.waiting) {
                    return Ok(false);
                }
                self.event(owner, Event::Waited);
            }
            Step::Compute(records) => return Ok(self.compute(owner, records)),
            Step::Work(outcome) => return self.work(owner, outcome, fences),
        }
        Ok(true)
    }

    fn begin(&mut self, owner: usize) {
        let config = Config { inputs: 1, changelog: Some("c".into()), start_latest: false };
        let (machine, commands) = Machine::new(config);
        self.owners[owner].machine = Some(machine);
        self.take(owner, commands);
    }

    fn end(&mut self, owner: usize) {
        let store = std::mem::take(&mut self.owners[owner].store);
        self.owners[owner] = Owner { store, ..Owner::default() };
    }

    fn event(&mut self, owner: usize, event: Event) {
        let Some(machine) = &mut self.owners[owner].machine else { return };
        let commands = machine.step(event);
        self.take(owner, commands);
    }

    fn take(&mut self, owner: usize, commands: Vec<Command>) {
        for command in commands {
            let one = &mut self.owners[owner];
            match command {
                Command::Wait => one.waiting = true,
                Command::Run { positions } => {
                    one.computed = positions[0];
                    one.state = one.store.1;
                }
                Command::Discard { keep } => one.batches.retain(|batch| Some(batch.id) == keep),
                Command::Warn(_) => {}
                Command::Fail(_) | Command::End { .. } => self.end(owner),
                other => one.work.push_back(other),
            }
        }
    }

    fn compute(&mut self, owner: usize, records: i64) -> bool {
        let one = &mut self.owners[owner];
        let Some(machine) = one.machine.as_ref().filter(|machine| machine.may_compute()) else {
            return false;
        };
        let _ = machine;
        if one.computed + records > self.records {
            return false;
        }
        // The place in the input names a batch well enough, and keeps the number of states finite.
        let id = one.computed as u64 + 1;
        let to = one.computed + records;
        one.batches.retain(|batch| batch.id != id);
        one.batches.push(Batch { id, from: one.computed, base: one.state, to });
        one.computed = to;
        one.state += records;
        self.event(owner, Event::Closed { id, positions: vec![to] });
        true
    }

    fn commit(&mut self, batch: &Batch, stamp: &Stamp) -> Result<(), Violation> {
        let at = self.committed.offset.unwrap_or(0);
        if batch.from != at {
            return Err(format!("a batch from {} was committed at {at}", batch.from));
        }
        if batch.base != self.changelog {
            return Err(format!("a batch on state {} was committed on {}", batch.base, self.changelog));
        }
        if stamp.counter != self.counter + 1 {
            return Err(format!("stamp {stamp} follows counter {}", self.counter));
        }
        self.counter = stamp.counter;
        self.committed = CommittedInput { offset: Some(batch.to), metadata: stamp.to_string() };
        self.changelog = batch.base + batch.to - batch.from;
        Ok(())
    }

    /// The thread of an owner does its next piece of work; `outcome` 0 is that all goes well.
    fn work(&mut self, owner: usize, outcome: u8, fences: u64) -> Result<bool, Violation> {
        let one = &mut self.owners[owner];
        let Some(command) = one.work.front().cloned() else { return Ok(false) };
        let outcomes = match command {
            Command::Send { .. } => 11,
            Command::Fence | Command::OpenStore { .. } | Command::Restore { .. } | Command::Apply { .. } => 2,
            _ => 1,
        };
        if outcome >= outcomes || (command == Command::Fence && outcome == 0 && self.epoch >= fences) {
            return Ok(false);
        }
        one.work.pop_front();
        let event = match command {
            Command::Fence if outcome == 1 => {
                one.epoch = None;
                Event::FenceLost { error: String::new() }
            }
            Command::Fence => {
                self.epoch += 1;
                self.owners[owner].epoch = Some(self.epoch);
                Event::Fenced { owner: format!("e{}", self.epoch) }
            }
            Command::DropProducer => {
                one.epoch = None;
                return Ok(true);
            }
            Command::ReadOffsets => Event::Offsets(vec![self.committed.clone()]),
            Command::ReadChangelogEnd => Event::ChangelogEnd(self.changelog),
            Command::OpenStore { .. } | Command::Restore { .. } | Command::Apply { .. } if outcome == 1 => {
                Event::StoreFailed { error: String::new() }
            }
            Command::OpenStore { wiped } => {
                if wiped {
                    one.store = (None, 0);
                }
                Event::StoreOpened { stamp: one.store.0.clone() }
            }
            Command::Restore { stamp, .. } => {
                one.store = (stamp, self.changelog);
                Event::Restored { empty: self.changelog == 0 }
            }
            Command::ReadRanges => {
                Event::Ranges(vec![InputRange { low: 0, stable: self.records, high: self.records }])
            }
            Command::Apply { id, stamp } => {
                let batch = one.batches.iter().find(|batch| batch.id == id).cloned();
                one.batches.retain(|batch| batch.id != id);
                let state = batch.map_or(one.store.1, |batch| batch.base + batch.to - batch.from);
                one.store = (Some(stamp.to_string()), state);
                Event::Applied { id }
            }
            Command::Send { id, stamp, positions, .. } => {
                return self.send(owner, id, stamp, positions[0], outcome);
            }
            other => return Err(format!("{other:?} is no work of a thread")),
        };
        self.event(owner, event);
        Ok(true)
    }

    fn send(
        &mut self,
        owner: usize,
        id: BatchId,
        stamp: Stamp,
        to: i64,
        outcome: u8,
    ) -> Result<bool, Violation> {
        let one = &self.owners[owner];
        let batch = match one.batches.iter().find(|batch| batch.id == id) {
            Some(batch) => batch.clone(),
            None if id == FIRST_POSITIONS => Batch { id, from: to, base: one.store.1, to },
            None => return Err(format!("batch {id} was forgotten and sent")),
        };
        let dead = |fenced| Outcome::Dead { fenced, error: String::new() };
        let unknown = |fenced| Outcome::Unknown { fenced, error: String::new() };
        let result = match one.epoch {
            None if outcome == 0 => dead(false),
            Some(epoch) if epoch != self.epoch => match outcome {
                0 => dead(true),
                1 => unknown(true),
                _ => return Ok(false),
            },
            None => return Ok(false),
            Some(epoch) => match outcome {
                0 | 1 => {
                    self.commit(&batch, &stamp)?;
                    Outcome::Committed { suspect: outcome == 1 }
                }
                2 | 3 => Outcome::Aborted { why: Abort::Generation, suspect: outcome == 3 },
                4 => Outcome::Aborted { why: Abort::Other(String::new()), suspect: false },
                5 => dead(false),
                6 => unknown(false),
                7 if self.late.len() < LATE => {
                    self.late.push(Late { epoch, batch, stamp });
                    unknown(false)
                }
                8 => {
                    self.commit(&batch, &stamp)?;
                    unknown(false)
                }
                9 => unknown(true),
                10 => {
                    self.commit(&batch, &stamp)?;
                    unknown(true)
                }
                _ => return Ok(false),
            },
        };
        self.event(owner, Event::Sent { id, outcome: result });
        Ok(true)
    }

    /// Without further faults the first owner carries the work to its end.
    fn settle(mut self) -> Result<(), Violation> {
        self.end(1);
        self.late.clear();
        for _ in 0..200 {
            if self.owners[0].machine.is_none() {
                self.begin(0);
            }
            self.event(0, Event::Assigned { mine: true });
            self.step(0, Step::Waited, u64::MAX)?;
            self.compute(0, 1);
            self.work(0, 0, u64::MAX)?;
            if self.committed.offset == Some(self.records) && self.owners[0].work.is_empty() {
                return Ok(());
            }
        }
        Err(format!("stuck at {:?}: {:?}", self.committed, self.owners[0].machine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flechtwerk::simulation::{Flaw, switch_on};

    #[test]
    fn all_histories_of_the_small_model_hold() {
        // One owner whole, and two up to where it takes too long without optimization: `scripts/simulate small` goes on.
        for (fences, most) in [(1, usize::MAX), (2, 60_000)] {
            let found = search(fences, 2, most).unwrap_or_else(|way| panic!("{way}"));
            println!("{fences} fences: {found:?}");
            assert!(found.states > 10_000, "{found:?}");
        }
    }

    /// What the machine decides by itself can be broken in it alone.
    #[test]
    fn a_broken_machine_is_caught() {
        for flaw in [Flaw::NoStampAfterFence, Flaw::SentAgain, Flaw::StaleStore] {
            switch_on(&[flaw]);
            let found = search(2, 2, usize::MAX);
            switch_on(&[]);
            assert!(found.is_err(), "{flaw:?} was not caught");
        }
    }
}
