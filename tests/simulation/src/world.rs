//! Everything outside of the processes: time, wires, the cluster, and what each process is known by. One lives on each thread
//! that simulates; ports and scheduler meet in it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use flechtwerk::simulation::GroupEvent;
use flechtwerk_dev_broker::coordinator::{TopicPartition, WriteMarkers};

use crate::broker::{Broker, Todo};
use crate::chance::Chance;
use crate::member::Member;
use crate::plan::{Fault, MS, Micros, Plan, Wire};
use crate::reader::Queue;
use crate::store::Disk;
use crate::wire::{Client, NODES, Slot, State};

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A thread or task of a process wants to look again.
    Wake(usize, u32),
    /// A request arrives.
    Arrive(usize),
    /// An answer arrives.
    Answer(usize),
    /// A connection is found broken.
    Broken(usize, usize, u32),
    /// A client has waited long enough for this request.
    Overdue(usize),
    /// A marker arrives, at a partition or group of a transaction that is decided.
    Marker(usize, Option<TopicPartition>),
    /// A member does its next thing.
    Member(usize, u32),
    /// A queue may read on.
    Fetch(usize),
    /// A fault of the plan.
    Fault(usize),
    /// A record of the plan.
    Coming(usize),
    /// The marker of a foreign transaction.
    Foreign { producer: i64, log: usize, commit: bool },
    /// A process starts.
    Start(usize),
    /// A process goes on.
    Continue(usize, u32),
}

pub(crate) struct Timed {
    at: Micros,
    number: u64,
    event: Event,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Timed) -> bool {
        self.number == other.number
    }
}

impl Eq for Timed {}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Timed) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Timed) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A decided transaction whose markers are on their way.
struct Marking {
    markers: WriteMarkers,
    epoch: i32,
    left: usize,
}

/// A process, as the world knows it.
#[derive(Default)]
pub(crate) struct Process {
    /// Counts its starts.
    pub(crate) life: u32,
    pub(crate) alive: bool,
    pub(crate) paused: bool,
    /// What happened to it while it was paused.
    held: Vec<Event>,
    /// Something has happened that its threads may wait for.
    pub(crate) touched: bool,
    pub(crate) disk: Disk,
}

/// See the module.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now: Micros,
    events: BinaryHeap<Reverse<Timed>>,
    /// When requests are overdue, in this order: all may take equally long.
    pub(crate) overdue: VecDeque<(Micros, usize)>,
    numbers: u64,
    pub(crate) broker: Broker,
    pub(crate) processes: Vec<Process>,
    pub(crate) clients: Vec<Client>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) members: Vec<Member>,
    pub(crate) queues: Vec<Queue>,
    marking: Vec<Marking>,
    /// Calls to make once the world is not borrowed.
    pub(crate) told: Vec<(usize, GroupEvent)>,
    pub(crate) wakes: Vec<usize>,
    /// Whose code runs: process and life.
    pub(crate) current: (usize, u32),
    /// A thread has got what it waited for.
    pub(crate) progress: bool,
    pub(crate) counts: [u32; 12],
    pub(crate) request_faults: Vec<(usize, u32, Wire)>,
    slow_markers: (Micros, Micros),
    /// Until when a node is cut off, and whether it still hears.
    pub(crate) deaf: [(Micros, bool); NODES],
    pub(crate) chance: Chance,
    pub(crate) random: Chance,
    /// What an observer has read of each log.
    pub(crate) observed: Vec<(i64, Vec<crate::records::Item>)>,
    /// A log of the outputs has grown.
    pub(crate) grown: Vec<usize>,
    /// The records that rounds began with, by input and offset, of the partition.
    pub(crate) rounds: Vec<(i32, Vec<(u16, i64)>)>,
    pub(crate) trace: Option<Vec<String>>,
    pub(crate) commits: usize,
}

thread_local! {
    static WORLD: RefCell<Option<Box<World>>> = const { RefCell::new(None) };
    static BASE: Instant = Instant::now();
}

/// Looks into the world of this thread. Never across a wait.
pub(crate) fn with<T>(look: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| look(world.as_mut().expect("a world is there while something runs in it")))
}

/// Begins a world on this thread.
pub(crate) fn begin(world: World) {
    WORLD.set(Some(Box::new(world)));
}

/// Ends it.
pub(crate) fn end() -> Option<Box<World>> {
    WORLD.with_borrow_mut(Option::take)
}

pub(crate) fn instant(at: Micros) -> Instant {
    BASE.with(|base| *base + Duration::from_micros(at))
}

pub(crate) fn micros(at: Instant) -> Micros {
    BASE.with(|base| at.saturating_duration_since(*base).as_nanos().div_ceil(1000) as Micros)
}

impl World {
    pub(crate) fn new(plan: Plan) -> World {
        let seed = plan.seed;
        let processes = (0..plan.processes).map(|_| Process::default()).collect();
        let request_faults = plan
            .faults
            .iter()
            .filter_map(|(_, fault)| match fault {
                Fault::Request(kind, nth, wire) => Some((*kind, *nth, *wire)),
                _ => None,
            })
            .collect();
        World {
            plan,
            now: 0,
            events: BinaryHeap::with_capacity(128),
            overdue: VecDeque::with_capacity(128),
            numbers: 0,
            broker: Broker::new(),
            processes,
            clients: Vec::new(),
            slots: Vec::with_capacity(512),
            members: Vec::new(),
            queues: Vec::new(),
            marking: Vec::new(),
            told: Vec::new(),
            wakes: Vec::new(),
            current: (0, 0),
            progress: false,
            counts: [0; 12],
            request_faults,
            slow_markers: (0, 0),
            deaf: [(0, false); NODES],
            chance: Chance::new(seed, 2),
            random: Chance::new(seed, 3),
            observed: Vec::new(),
            grown: Vec::new(),
            rounds: Vec::new(),
            trace: None,
            commits: 0,
        }
    }

    pub(crate) fn say(&mut self, what: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>9.3} ms  {}", now as f64 / 1000.0, what()));
        }
    }

    pub(crate) fn at(&mut self, at: Micros, event: Event) {
        self.numbers += 1;
        self.events.push(Reverse(Timed { at, number: self.numbers, event }));
    }

    pub(crate) fn after(&mut self, time: Micros, event: Event) {
        self.at(self.now + time, event);
    }

    /// The next event, and moves the clock to it; `None` beyond `until`.
    pub(crate) fn next(&mut self, until: Micros) -> Option<Event> {
        loop {
            while let Some((_, slot)) = self.overdue.front()
                && !matches!(self.slots[*slot].state, State::Pending)
            {
                self.overdue.pop_front();
            }
            if let Some((at, slot)) = self.overdue.front().copied()
                && at <= self.now
            {
                self.overdue.pop_front();
                self.after(0, Event::Overdue(slot));
            }
            let at = self.events.peek().map(|Reverse(timed)| timed.at);
            if let Some((overdue, slot)) = self.overdue.front().copied()
                && overdue <= until
                && at.is_none_or(|at| overdue < at)
            {
                self.overdue.pop_front();
                self.at(overdue, Event::Overdue(slot));
                continue;
            }
            if let Some(due) = self.broker.deadline()
                && at.is_none_or(|at| due <= at)
                && due <= until
            {
                self.now = self.now.max(due);
                let mut todo = Vec::new();
                self.broker.tick(self.now, &mut todo);
                self.carry_out(todo);
                continue;
            }
            let at = at.filter(|at| *at <= until)?;
            self.now = self.now.max(at);
            let Reverse(timed) = self.events.pop()?;
            if let Some(process) = self.process_of(&timed.event) {
                let process = &mut self.processes[process];
                if process.paused {
                    process.held.push(timed.event);
                    continue;
                }
            }
            return Some(timed.event);
        }
    }

    /// Whose process must run for this to happen.
    fn process_of(&self, event: &Event) -> Option<usize> {
        match event {
            Event::Wake(process, _) => Some(*process),
            Event::Answer(slot) | Event::Overdue(slot) => {
                Some(self.clients[self.slots[*slot].client].process)
            }
            Event::Broken(client, ..) => Some(self.clients[*client].process),
            Event::Member(member, _) => Some(self.clients[self.members[*member].client].process),
            Event::Fetch(queue) => Some(self.clients[self.queues[*queue].client].process),
            _ => None,
        }
    }

    /// SIGCONT: all that waited happens now.
    pub(crate) fn go_on(&mut self, process: usize) {
        self.processes[process].paused = false;
        self.processes[process].touched = true;
        for event in std::mem::take(&mut self.processes[process].held) {
            self.after(0, event);
        }
    }

    pub(crate) fn touch(&mut self, process: usize) {
        self.processes[process].touched = true;
    }

    pub(crate) fn carry_out(&mut self, todo: Vec<Todo>) {
        for one in todo {
            match one {
                Todo::Answer(slot, answer) => self.answer(slot, answer),
                Todo::Markers(markers) => self.begin_markers(markers),
                Todo::Grown(log) => self.log_grown(log),
            }
        }
    }

    fn begin_markers(&mut self, markers: WriteMarkers) {
        let index = self.marking.len();
        let left = markers.partitions.len() + markers.groups.len();
        let slow = if self.now < self.slow_markers.0 { self.slow_markers.1 } else { 0 };
        let places = markers.partitions.iter().cloned().map(Some);
        for place in places.chain(markers.groups.iter().map(|_| None)).collect::<Vec<_>>() {
            let slow = if slow > 0 { self.chance.below(slow) } else { 0 };
            let time = self.chance.range(100, 1_500) + slow;
            self.after(time, Event::Marker(index, place));
        }
        if markers.commit {
            self.commits += 1;
        }
        self.say(|| format!("   {}: decided, commit {}", markers.transactional_id, markers.commit));
        let epoch = self.broker.epoch;
        if left == 0 {
            let mut todo = Vec::new();
            self.broker.marked(&markers, epoch, self.now, &mut todo);
            self.carry_out(todo);
        }
        self.marking.push(Marking { markers, epoch, left });
    }

    pub(crate) fn marker(&mut self, index: usize, place: Option<&TopicPartition>) {
        let marking = &mut self.marking[index];
        marking.left -= 1;
        let (markers, epoch, last) = (marking.markers.clone(), marking.epoch, marking.left == 0);
        let mut todo = Vec::new();
        match place {
            Some(at) => self.broker.mark(&markers, epoch, at, self.now, &mut todo),
            // There is one group.
            None => {
                for group in &markers.groups {
                    self.broker.mark_group(&markers, epoch, group, self.now, &mut todo);
                }
            }
        }
        if last {
            self.broker.marked(&markers, epoch, self.now, &mut todo);
        }
        self.carry_out(todo);
    }

    pub(crate) fn slow_markers(&mut self, time: Micros) {
        self.slow_markers = (self.now + 500 * MS, time);
    }

    pub(crate) fn log_grown(&mut self, log: usize) {
        self.grown.push(log);
        for queue in std::mem::take(&mut self.broker.logs[log].waiting) {
            self.fetch_again(queue);
        }
    }
}

/// The topics of a history, in the order of their logs: inputs, output, changelog, each with all its partitions.
pub(crate) fn topics(inputs: usize) -> Vec<(&'static str, bool)> {
    let mut topics = vec![("left", false)];
    if inputs == 2 {
        topics.push(("right", false));
    }
    topics.push(("seen", false));
    topics.push((if inputs == 2 { "sim-double-changelog" } else { "sim-single-changelog" }, true));
    topics
}

/// The group, which is the application id.
pub(crate) fn group(inputs: usize) -> Rc<str> {
    if inputs == 2 { "sim-double".into() } else { "sim-single".into() }
}

const _: () = assert!(NODES > 1);
