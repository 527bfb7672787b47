//! One history: a plan carried out, and everything checked.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use flechtwerk::simulation::{Flaw, switch_on};
use flechtwerk_checkers::{Check, Violation};
use flechtwerk_dev_broker::coordinator::{Producer, TopicPartition};
use flechtwerk_dev_broker::log::{Isolation, write_batch};

use crate::broker::time;
use crate::chance::Chance;
use crate::plan::{FAULTS, Fault, How, MS, Micros, Plan};
use crate::process::{Processes, RESTART};
use crate::records;
use crate::world::{self, Event, World, begin, topics, with};

/// After the last fault everything must be processed within this.
pub const BOUND: Micros = 20_000 * MS;
/// Looks whether all is done, this often.
const LOOK: Micros = 40 * MS;
/// Producers that are none of ours have ids from here on.
const FOREIGN: i64 = 1_000_000;

/// What came of a history.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What must never happen.
    pub violations: Vec<Violation>,
    /// Transactions that were committed.
    pub commits: usize,
    /// Simulated time.
    pub time: Micros,
    /// Kills, pauses and other ends of processes that were carried out, and those that left a transaction open.
    pub ends: (usize, usize),
    /// What happened, if that was asked for.
    pub trace: Vec<String>,
}

/// Carries a plan out and checks what came of it. `traced`: says what happens.
pub fn play(plan: &Plan, flaws: &[Flaw], traced: bool) -> Outcome {
    switch_on(flaws);
    let mut outcome = Outcome::default();
    let mut world = World::new(plan.clone());
    world.trace = traced.then(Vec::new);
    begin(world);
    let played = catch_unwind(AssertUnwindSafe(|| History::new().play(&mut outcome)));
    if let Err(panic) = played {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        outcome.violations.push(Violation::new(Check::Liveness, "panic", text.unwrap_or_default()));
        flechtwerk::simulation::install(None);
    }
    if let Some(world) = world::end() {
        outcome.commits = world.commits;
        outcome.time = world.now;
        outcome.trace = world.trace.unwrap_or_default();
    }
    switch_on(&[]);
    outcome
}

struct History {
    processes: Processes,
    ends: (usize, usize),
    /// Starts that were ended by a failure, with the message.
    failures: Vec<String>,
    stopping: bool,
}

impl History {
    fn new() -> History {
        let count = with(|world| {
            for (topic, compact) in topics(world.plan.inputs) {
                for partition in 0..world.plan.partitions {
                    world.broker.add_log(topic, partition, compact);
                    world.observed.push((0, Vec::new()));
                }
            }
            let plan = world.plan.clone();
            for (index, record) in plan.records.iter().enumerate() {
                world.at(record.at, Event::Coming(index));
            }
            for (index, (at, _)) in plan.faults.iter().enumerate() {
                world.at(*at, Event::Fault(index));
            }
            let mut chance = Chance::new(plan.seed, 4);
            for process in 0..plan.processes {
                let at = if chance.one_in(2) { 0 } else { chance.below(900 * MS) };
                world.at(at, Event::Start(process));
            }
            plan.processes
        });
        History { processes: Processes::new(count), ends: (0, 0), failures: Vec::new(), stopping: false }
    }

    fn play(mut self, outcome: &mut Outcome) {
        self.advance(FAULTS);
        // Whatever a fault has held up is let go.
        let end = FAULTS + BOUND;
        let mut done = false;
        while !done && with(|world| world.now) < end {
            self.advance(with(|world| (world.now + LOOK).min(end)));
            done = with(|world| is_done(world));
        }
        let waiting = if done { Vec::new() } else { self.failures.clone() };
        if !done {
            let (progress, waited) =
                with(|world| (crate::judge::progress(world), Duration::from_micros(BOUND)));
            outcome.violations.extend(flechtwerk_checkers::ends::liveness(&progress, &waiting, waited));
            if outcome.violations.is_empty() {
                outcome.violations.push(Violation::new(
                    Check::Liveness,
                    "not at rest",
                    "something is left open",
                ));
            }
        }
        self.stopping = true;
        let count = with(|world| world.processes.len());
        (0..count).for_each(|process| self.processes.stop(process));
        self.processes.run();
        let end = with(|world| world.now) + 8_000 * MS;
        while with(|world| world.now < end && world.processes.iter().any(|one| one.alive)) {
            let next = with(|world| world.now) + LOOK;
            self.advance(next);
        }
        let hanging = with(|world| world.processes.iter().any(|one| one.alive));
        if hanging {
            outcome.violations.push(Violation::new(
                Check::Liveness,
                "does not stop",
                "a clean stop took too long",
            ));
        }
        outcome.ends = self.ends;
        self.processes.end();
        // What is still on its way arrives.
        let until = with(|world| world.now) + 3_000 * MS;
        while let Some(event) = with(|world| world.next(until)) {
            outside(&event);
        }
        with(|world| {
            observe(world);
            crate::judge::judge(world, done, &mut outcome.violations);
        });
    }

    fn advance(&mut self, until: Micros) {
        while let Some(event) = with(|world| world.next(until)) {
            self.happen(event);
            self.processes.run();
            for exit in self.processes.exits() {
                with(|world| {
                    world.say(|| format!("p{} has ended: {:?}", exit.process, exit.result));
                    if !self.stopping {
                        world.after(RESTART, Event::Start(exit.process));
                    }
                });
                if let Err(message) = exit.result {
                    self.failures.push(message);
                }
            }
            with(observe);
        }
        with(|world| world.now = world.now.max(until));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start(process) if !self.stopping => self.processes.start(process),
            Event::Continue(process, life) => with(|world| {
                if world.processes[process].paused && world.processes[process].life == life {
                    world.say(|| format!("p{process} goes on"));
                    world.go_on(process);
                }
            }),
            Event::Fault(index) if !self.stopping => self.fault(index),
            other => outside(&other),
        }
    }

    fn fault(&mut self, index: usize) {
        let (_, fault) = with(|world| world.plan.faults[index]);
        with(|world| {
            if !matches!(fault, Fault::Request(..)) {
                world.say(|| format!("!! {fault:?}"));
            }
        });
        match fault {
            Fault::Request(..) => {}
            Fault::Kill(process, again) => self.kill(process, again, |_, _| {}),
            Fault::Power(process, again) => self.kill(process, again, |world, process| {
                let mut chance = Chance::new(world.plan.seed, 5);
                world.processes[process].disk.lose_power(&mut chance);
            }),
            Fault::Wipe(process, again) => self.kill(process, again, |world, process| {
                world.processes[process].disk = Default::default();
            }),
            Fault::Pause(process, time) => {
                self.count_end();
                with(|world| {
                    let one = &mut world.processes[process.min(world.plan.processes - 1)];
                    if one.alive && !one.paused {
                        one.paused = true;
                        let life = one.life;
                        world.after(time, Event::Continue(process, life));
                    }
                });
            }
            Fault::Stop(process, _) => {
                self.processes.stop(process.min(with(|world| world.plan.processes) - 1))
            }
            Fault::Move(time) => with(|world| {
                let mut todo = Vec::new();
                let until = world.now + time;
                world.broker.move_away(world.now, until, &mut todo);
                world.carry_out(todo);
            }),
            Fault::Markers(time) => with(|world| world.slow_markers(time)),
            Fault::Deaf(node, heard, time) => with(|world| world.cut_off(node, heard, time)),
            Fault::Compact => with(|world| world.broker.compact(world.now)),
            Fault::Lag(time) => with(|world| {
                let until = world.now + time;
                for index in 0..world.broker.logs.len() {
                    let log = &mut world.broker.logs[index];
                    if log.log.config().compact {
                        let high = log.log.high_watermark();
                        log.lag = Some(((high - 3).max(0), until));
                        world.at(until, Event::Foreign { producer: -1, log: index, commit: false });
                    }
                }
            }),
            Fault::Foreign(time) => with(|world| {
                for index in 0..world.broker.logs.len() {
                    if world.broker.logs[index].log.config().compact {
                        let producer = FOREIGN + 1_000 + world.broker.logs[index].log.high_watermark();
                        let batch = write_batch(
                            Some((Producer::new(producer, 0), 0)),
                            0,
                            &[(Some(b"\0canary"), Some(b"\x01{\"n\":666,\"of\":\"canary\"}"))],
                        );
                        let at = time_of(world);
                        if world.broker.logs[index].log.append(batch, at).is_ok() {
                            world.log_grown(index);
                            world.after(time, Event::Foreign { producer, log: index, commit: false });
                        }
                    }
                }
            }),
        }
    }

    fn count_end(&mut self) {
        self.ends.0 += 1;
        self.ends.1 += usize::from(with(|world| !world.broker.open_transactions(world.now).is_empty()));
    }

    fn kill(&mut self, process: usize, again: Micros, then: impl FnOnce(&mut World, usize)) {
        let process = process.min(with(|world| world.plan.processes) - 1);
        self.count_end();
        self.processes.kill(process);
        with(|world| {
            then(world, process);
            world.after(again, Event::Start(process));
        });
    }
}

fn time_of(world: &World) -> i64 {
    time(world.now).wall
}

/// What happens outside of processes.
fn outside(event: &Event) {
    with(|world| match event {
        Event::Wake(process, life) => {
            if world.processes[*process].life == *life {
                world.touch(*process);
            }
        }
        Event::Arrive(slot) => world.arrive(*slot),
        Event::Answer(slot) => world.answered(*slot),
        Event::Broken(client, node, number) => world.broken(*client, *node, *number),
        Event::Overdue(slot) => world.is_overdue(*slot),
        Event::Marker(index, place) => world.marker(*index, place.as_ref()),
        Event::Member(member, timer) => world.member_due(*member, *timer),
        Event::Fetch(queue) => world.fetch(*queue),
        Event::Coming(index) => coming(world, *index),
        Event::Foreign { producer, log, commit } => {
            if *producer >= 0 {
                let at = time_of(world);
                let _ = world.broker.logs[*log].log.append_marker(*producer, 0, *commit, 0, at);
            }
            world.log_grown(*log);
        }
        Event::Fault(_) | Event::Start(..) | Event::Continue(..) => {}
    });
}

/// A record comes in, as its plan says.
fn coming(world: &mut World, index: usize) {
    let record = world.plan.records[index];
    let (topic, _) = topics(world.plan.inputs)[record.input];
    let Some(log) = world.broker.log_of(topic, record.partition) else { return };
    let canary = matches!(record.how, How::Aborted(_));
    let mut value = vec![record.operation];
    value.extend_from_slice(format!("{index}{}", if canary { "canary" } else { "" }).as_bytes());
    let key = format!("k{}", record.key);
    let producer = FOREIGN + index as i64;
    let written = (!matches!(record.how, How::Plainly)).then(|| (Producer::new(producer, 0), 0));
    let batch = write_batch(written, 0, &[(Some(key.as_bytes()), Some(&value[..]))]);
    let at = time_of(world);
    world.broker.logs[log].log.append(batch, at).expect("an input takes a record");
    world.log_grown(log);
    match record.how {
        How::Plainly => {}
        How::Committed(time) => world.after(time, Event::Foreign { producer, log, commit: true }),
        How::Aborted(time) => world.after(time, Event::Foreign { producer, log, commit: false }),
    }
}

/// An observer of the outputs reads on.
fn observe(world: &mut World) {
    let mut grown = std::mem::take(&mut world.grown);
    grown.dedup();
    for log in grown {
        if &*world.broker.logs[log].topic != "seen" {
            continue;
        }
        let (next, read) = &mut world.observed[log];
        let one = &world.broker.logs[log].log;
        if *next >= one.last_stable_offset() {
            continue;
        }
        if let Ok(fetched) = one.read(*next, 1 << 20, Isolation::ReadCommitted, true) {
            let (items, position) = records::read(&fetched.records, *next, i64::MAX, &fetched.aborted);
            read.extend(items);
            *next = position;
        }
    }
}

/// True if all that came in is committed, nothing is open, and all processes run.
fn is_done(world: &World) -> bool {
    let group = world::group(world.plan.inputs);
    let inputs = topics(world.plan.inputs).into_iter().take(world.plan.inputs);
    let behind = inputs
        .flat_map(|(topic, _)| (0..world.plan.partitions).map(move |partition| (topic, partition)))
        .any(|(topic, partition)| {
            let Some(log) = world.broker.log_of(topic, partition) else { return true };
            let last = last_record(world, log);
            let (committed, _) = world.broker.committed_at(&group, &TopicPartition::new(topic, partition));
            committed < 0 || last.is_some_and(|last| committed <= last)
        });
    !behind
        && world.processes.iter().all(|process| process.alive && !process.paused)
        && world.broker.open_transactions(world.now).is_empty()
        && world.broker.logs.iter().all(|log| log.log.last_stable_offset() == log.log.high_watermark())
}

/// Offset of the last record that a read_committed reader sees.
pub(crate) fn last_record(world: &World, log: usize) -> Option<i64> {
    let one = &world.broker.logs[log].log;
    let read = one.read(one.log_start_offset(), 1 << 20, Isolation::ReadCommitted, true).ok()?;
    let (items, _) = records::read(&read.records, 0, i64::MAX, &read.aborted);
    items.last().map(|item| item.offset)
}

/// The keys and values that only aborted transactions of the input have.
pub(crate) fn canaries(world: &World) -> BTreeSet<Vec<u8>> {
    let planned = world.plan.records.iter().enumerate();
    planned
        .filter(|(_, record)| matches!(record.how, How::Aborted(_)))
        .map(|(index, record)| format!("{}{index}canary", char::from(record.operation)).into_bytes())
        .collect()
}

/// All batches of a log.
pub(crate) fn raw(world: &World, log: usize) -> Vec<flechtwerk_checkers::batches::Batch<records::Item>> {
    let one = &world.broker.logs[log].log;
    let read = one.read(one.log_start_offset(), 1 << 22, Isolation::ReadUncommitted, true);
    read.map(|read| records::raw(&read.records)).unwrap_or_default()
}

/// The start of each input partition with this number.
pub(crate) fn starts(world: &World, number: i32) -> BTreeMap<flechtwerk_checkers::Partition, i64> {
    let inputs = topics(world.plan.inputs).into_iter().take(world.plan.inputs);
    inputs.map(|(topic, _)| (flechtwerk_checkers::Partition::new(topic, number), 0)).collect()
}
