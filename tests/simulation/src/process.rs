//! Processes: the runtime itself, with its threads as coroutines and its async tasks polled by hand, on the world's clock.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use flechtwerk::simulation::{
    self, BrokerError, Clients, Group, GroupEvent, Host, Process as Settings, ProducerFactory, Reader,
    ReaderKind, StoreFactory,
};

use crate::member::SimGroup;
use crate::plan::{MS, Micros};
use crate::producer::SimProducers;
use crate::reader::SimReader;
use crate::threads::{Thread, is_killing, pause};
use crate::world::{Event, instant, micros, with};
use crate::{stages, times};

/// Topic id of the changelog.
pub(crate) const CHANGELOG_ID: &str = "dGhlIGNoYW5nZWxvZyAgIA";

/// How a process ended: whose it was, and what it said.
pub(crate) struct Exit {
    pub(crate) process: usize,
    pub(crate) result: Result<(), String>,
}

type Stop = Box<dyn Fn() + Send>;

enum Spawned {
    Thread(Thread),
    Task(Pin<Box<dyn Future<Output = ()> + Send>>),
}

thread_local! {
    static SPAWNED: RefCell<Vec<Spawned>> = const { RefCell::new(Vec::new()) };
    static EXITS: RefCell<Vec<Exit>> = const { RefCell::new(Vec::new()) };
    static STOPS: RefCell<Vec<Option<Stop>>> = const { RefCell::new(Vec::new()) };
    /// When the task that is polled wants to be polled again.
    static TIMER: Cell<Option<Micros>> = const { Cell::new(None) };
}

/// Stands in for clock, chance and threads.
struct Stand;

impl Host for Stand {
    fn now(&self) -> Instant {
        instant(with(|world| world.now))
    }

    fn random(&self) -> u64 {
        with(|world| world.random.number())
    }

    fn round(&self, partition: i32, records: Vec<(u16, i64)>) {
        with(|world| world.rounds.push((partition, records)));
    }

    fn wait(&self, until: Instant, ready: &mut dyn FnMut() -> bool) {
        wait(micros(until), ready);
    }

    fn thread(&self, _: String, work: Box<dyn FnOnce() + Send>) {
        SPAWNED.with_borrow_mut(|spawned| spawned.push(Spawned::Thread(Thread::new(work))));
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        SPAWNED.with_borrow_mut(|spawned| spawned.push(Spawned::Task(task)));
    }

    fn timer(&self, at: Instant, _: &Waker) {
        let at = micros(at);
        TIMER.set(Some(TIMER.get().map_or(at, |before| before.min(at))));
    }
}

/// Holds the calling thread up until `ready` says true, or the time is up.
pub(crate) fn wait(until: Micros, ready: &mut dyn FnMut() -> bool) {
    if is_killing() {
        return;
    }
    let mut asleep = false;
    loop {
        if ready() || with(|world| world.now >= until) {
            with(|world| world.progress = true);
            return;
        }
        if !std::mem::replace(&mut asleep, true) {
            with(|world| {
                let (process, life) = world.current;
                world.at(until, Event::Wake(process, life));
            });
        }
        pause();
    }
}

/// A cluster to connect to.
struct SimClients {
    fixed: Option<String>,
}

impl Clients for SimClients {
    fn join(
        &self,
        _: &str,
        topics: &[Arc<str>],
        events: Box<dyn Fn(GroupEvent) + Send + Sync>,
    ) -> Result<Arc<dyn Group>, BrokerError> {
        let member = with(|world| world.join(topics, self.fixed.clone(), Arc::from(events)));
        Ok(Arc::new(SimGroup(member)))
    }

    fn reader(&self, _: &str, kind: ReaderKind) -> Result<Arc<dyn Reader>, BrokerError> {
        let client = with(|world| world.client());
        Ok(Arc::new(SimReader { client, changelogs: kind == ReaderKind::Changelogs }))
    }

    fn producers(&self) -> Arc<dyn ProducerFactory> {
        Arc::new(SimProducers)
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    woken: Arc<Flag>,
    waker: Waker,
    timer: Option<Micros>,
}

/// What runs in a process.
#[derive(Default)]
struct Inside {
    /// The first one is the program's own; once it has ended, so has the process.
    threads: Vec<(bool, Thread)>,
    tasks: Vec<Task>,
}

/// All processes of a history.
pub(crate) struct Processes {
    inside: Vec<Inside>,
}

fn runtime() -> &'static tokio::runtime::Handle {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        // Nothing ever runs in it: the host takes the tasks.
        tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime without drivers needs nothing")
    });
    runtime.handle()
}

impl Processes {
    pub(crate) fn new(count: usize) -> Processes {
        simulation::install(Some(Rc::new(Stand)));
        STOPS.set((0..count).map(|_| None).collect());
        EXITS.take();
        SPAWNED.take();
        Processes { inside: (0..count).map(|_| Inside::default()).collect() }
    }

    /// Starts a process, unless it runs.
    pub(crate) fn start(&mut self, process: usize) {
        let settings = with(|world| {
            let one = &mut world.processes[process];
            if one.alive {
                return None;
            }
            one.alive = true;
            one.life += 1;
            one.touched = true;
            let (disk, plan) = (one.disk.clone(), &world.plan);
            let fixed = plan.fixed.then(|| format!("fixed-{process}"));
            let stores: Arc<dyn StoreFactory> =
                if plan.memory { simulation::memory_stores() } else { Arc::new(disk) };
            Some(Settings {
                pipeline: if plan.inputs == 2 { &stages::DOUBLE } else { &stages::SINGLE },
                changelog_id: CHANGELOG_ID.to_owned(),
                partitions: plan.partitions,
                instance_id: fixed.clone(),
                times: times::times(1 + (plan.seed % 5) as usize),
                clients: Arc::new(SimClients { fixed }),
                stores,
            })
        });
        let Some(settings) = settings else { return };
        with(|world| world.say(|| format!("p{process} starts")));
        let work = move || {
            let stoppable = |stop| STOPS.with_borrow_mut(|stops| stops[process] = Some(stop));
            let result = simulation::run(settings, runtime(), stoppable);
            EXITS.with_borrow_mut(|exits| exits.push(Exit { process, result }));
        };
        self.inside[process].threads.push((true, Thread::new(Box::new(work))));
    }

    /// Asks a process to stop cleanly.
    pub(crate) fn stop(&self, process: usize) {
        let stop = STOPS.with_borrow_mut(|stops| stops[process].take());
        if let Some(stop) = stop {
            stop();
            with(|world| world.touch(process));
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, process: usize) {
        with(|world| {
            world.say(|| format!("p{process} is killed"));
            world.processes[process].alive = false;
            if world.processes[process].paused {
                world.go_on(process);
            }
        });
        self.bury(process);
    }

    fn bury(&mut self, process: usize) {
        let inside = std::mem::take(&mut self.inside[process]);
        inside.threads.into_iter().for_each(|(_, thread)| thread.kill());
        drop(inside.tasks);
        STOPS.with_borrow_mut(|stops| stops[process] = None);
    }

    /// Runs what can run in the processes that something has happened to.
    pub(crate) fn run(&mut self) {
        loop {
            self.deliver();
            let next = with(|world| {
                let found = world.processes.iter().position(|one| one.touched && one.alive && !one.paused);
                if let Some(process) = found {
                    world.processes[process].touched = false;
                    world.current = (process, world.processes[process].life);
                }
                found
            });
            let Some(process) = next else { return };
            self.settle(process);
        }
    }

    /// Calls back into processes, with the world let go.
    fn deliver(&self) {
        let (told, wakes) = with(|world| {
            let told: Vec<_> = std::mem::take(&mut world.told)
                .into_iter()
                .filter(|(member, _)| !world.is_gone(world.members[*member].client))
                .map(|(member, event)| (world.members[member].events.clone(), event))
                .collect();
            let wakes: Vec<_> =
                std::mem::take(&mut world.wakes).into_iter().filter_map(|queue| world.waker(queue)).collect();
            (told, wakes)
        });
        told.into_iter().for_each(|(events, event)| events(event));
        wakes.into_iter().for_each(|wake| wake());
    }

    fn settle(&mut self, process: usize) {
        loop {
            let now = with(|world| {
                world.progress = false;
                world.now
            });
            let mut any = self.poll_tasks(process, now);
            let mut index = 0;
            while index < self.inside[process].threads.len() {
                if self.inside[process].threads[index].1.resume() {
                    index += 1;
                } else {
                    any = true;
                    let (main, _) = self.inside[process].threads.remove(index);
                    if main {
                        return self.exited(process);
                    }
                }
                self.adopt(process);
            }
            if !any && !with(|world| world.progress) {
                return;
            }
            self.deliver();
        }
    }

    fn poll_tasks(&mut self, process: usize, now: Micros) -> bool {
        let mut any = false;
        let mut index = 0;
        while index < self.inside[process].tasks.len() {
            let task = &mut self.inside[process].tasks[index];
            if task.timer.is_some_and(|at| at <= now) {
                task.timer = None;
                task.woken.0.store(true, Ordering::Relaxed);
            }
            if !task.woken.0.swap(false, Ordering::Relaxed) {
                index += 1;
                continue;
            }
            any = true;
            TIMER.set(None);
            let ended =
                matches!(task.future.as_mut().poll(&mut Context::from_waker(&task.waker)), Poll::Ready(()));
            if ended {
                self.inside[process].tasks.remove(index);
            } else {
                if let Some(at) = TIMER.get()
                    && task.timer.is_none_or(|before| at < before)
                {
                    task.timer = Some(at);
                    with(|world| {
                        let (process, life) = world.current;
                        world.at(at, Event::Wake(process, life));
                    });
                }
                index += 1;
            }
            self.adopt(process);
        }
        any
    }

    fn adopt(&mut self, process: usize) {
        for one in SPAWNED.take() {
            match one {
                Spawned::Thread(thread) => self.inside[process].threads.push((false, thread)),
                Spawned::Task(future) => {
                    let woken = Arc::new(Flag(AtomicBool::new(true)));
                    let waker = Waker::from(woken.clone());
                    self.inside[process].tasks.push(Task { future, woken, waker, timer: None });
                }
            }
            with(|world| world.progress = true);
        }
    }

    /// The program has ended by itself.
    fn exited(&mut self, process: usize) {
        with(|world| world.processes[process].alive = false);
        self.bury(process);
    }

    /// The processes that have ended by themselves since it was asked last.
    pub(crate) fn exits(&self) -> Vec<Exit> {
        EXITS.take()
    }

    /// Ends all of them at once.
    pub(crate) fn end(mut self) {
        for process in 0..self.inside.len() {
            self.kill(process);
        }
        simulation::install(None);
    }
}

/// After an exit, whoever started a process starts it again.
pub(crate) const RESTART: Micros = 150 * MS;
