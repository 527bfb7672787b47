//! The instances: each has a slot, in which it is killed, stopped and started again, as a supervisor would.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use flechtwerk_tests::{Instance, Rig};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::disk;
use crate::interrupt;
use crate::journal::Journal;
use crate::schedule::Disk;

/// How long a supervisor waits before it starts a process again that ended by itself.
const AGAIN: Duration = Duration::from_millis(500);
/// An orderly end takes at most this.
const ORDERLY: Duration = Duration::from_secs(45);
/// Who has not come to its crash point by then is not waited for.
const ARMED: Duration = Duration::from_secs(20);
/// A process is being started for at most so long.
const YOUNG: Duration = Duration::from_secs(5);

/// One life of an instance.
#[derive(Clone, Debug)]
pub struct Life {
    /// The slot's number.
    pub slot: usize,
    /// The process.
    pub pid: u32,
    /// Its log.
    pub log: PathBuf,
    /// When it was started.
    pub began: SystemTime,
    /// When it ended; `None`: it has not.
    pub ended: Option<SystemTime>,
}

/// A kill, for the question what it left open.
#[derive(Clone, Debug)]
pub struct Kill {
    /// When.
    pub at: SystemTime,
    /// The life that it ended.
    pub life: usize,
}

struct Slot {
    name: String,
    rig: Rig,
    state: Option<PathBuf>,
    instance: Option<Instance>,
    life: usize,
    start_at: Option<Instant>,
    resume_at: Option<Instant>,
    leaving: Option<Instant>,
    works: bool,
    kills: u32,
    armed: Option<Instant>,
    /// The crash point at which it has died since it was armed.
    died_at: Option<String>,
    revoke: bool,
}

/// All instances.
pub struct Fleet {
    slots: Vec<Slot>,
    journal: Journal,
    /// Every life that there was.
    pub lives: Vec<Life>,
    /// Every kill.
    pub kills: Vec<Kill>,
    /// What no instance may do.
    pub wrong: Vec<String>,
    /// How often one ended by itself.
    pub ended_alone: usize,
    ending: bool,
    /// How often one has died at each crash point.
    pub crashes: BTreeMap<String, usize>,
}

impl Fleet {
    /// No instance yet.
    pub fn new(journal: Journal) -> Fleet {
        Fleet {
            slots: Vec::new(),
            journal,
            lives: Vec::new(),
            kills: Vec::new(),
            wrong: Vec::new(),
            ended_alone: 0,
            ending: false,
            crashes: BTreeMap::new(),
        }
    }

    /// Adds an instance, not started yet. `state`: the folder of its state, if that outlives it.
    pub fn add(&mut self, name: String, rig: Rig, state: Option<PathBuf>) -> usize {
        self.slots.push(Slot {
            name,
            rig,
            state,
            instance: None,
            life: 0,
            start_at: None,
            resume_at: None,
            leaving: None,
            works: false,
            kills: 0,
            armed: None,
            died_at: None,
            revoke: false,
        });
        self.slots.len() - 1
    }

    /// Starts an instance that does not run. False if it does.
    pub fn begin(&mut self, number: usize) -> bool {
        let slot = &mut self.slots[number];
        let idle = slot.instance.is_none() && slot.start_at.is_none();
        if idle {
            slot.start_at = Some(Instant::now());
        }
        idle
    }

    /// Names of the slots.
    pub fn names(&self) -> Vec<String> {
        self.slots.iter().map(|slot| slot.name.clone()).collect()
    }

    /// Processes that run, with the numbers of their slots.
    pub fn processes(&self) -> Vec<(usize, u32)> {
        let running = self.slots.iter().enumerate();
        running.filter_map(|(number, slot)| Some((number, slot.instance.as_ref()?.pid()))).collect()
    }

    /// Folders of state.
    pub fn states(&self) -> Vec<PathBuf> {
        self.slots.iter().filter_map(|slot| slot.state.clone()).collect()
    }

    /// True if the instance has said that a task runs.
    pub fn works(&mut self, slot: usize) -> bool {
        let slot = &mut self.slots[slot];
        if !slot.works && slot.resume_at.is_none() && slot.leaving.is_none() {
            slot.works = slot.instance.as_ref().is_some_and(|one| one.log().contains("task is running"));
        }
        slot.works && slot.instance.is_some()
    }

    /// True if it is on its way to a crash point, and is to be left alone.
    pub fn is_armed(&self, slot: usize) -> bool {
        let slot = &self.slots[slot];
        slot.instance.is_some() && slot.armed.is_some_and(|since| since.elapsed() < ARMED)
    }

    /// True if it has died at this crash point since it was armed.
    pub fn has_died_at(&self, slot: usize, point: &str) -> bool {
        self.slots[slot].died_at.as_deref() == Some(point)
    }

    /// True if there is a process.
    pub fn runs(&self, slot: usize) -> bool {
        self.slots[slot].instance.is_some()
    }

    /// True if it is stopped.
    pub fn is_stopped(&self, slot: usize) -> bool {
        self.slots[slot].resume_at.is_some()
    }

    /// Has an instance stopped for a moment, and left so if the answer is yes.
    pub fn with_stopped(&mut self, number: usize, look: impl FnOnce() -> bool) -> bool {
        let slot = &self.slots[number];
        let Some(instance) = &slot.instance else { return false };
        if slot.resume_at.is_some() {
            return true;
        }
        instance.signal(Signal::SIGSTOP);
        let yes = look();
        if !yes {
            instance.signal(Signal::SIGCONT);
        }
        yes
    }

    /// SIGKILL; it comes back after `away`. False if there is no process.
    pub fn kill(&mut self, number: usize, away: Duration, spoil: Option<(Disk, u64)>) -> bool {
        let slot = &mut self.slots[number];
        let Some(mut instance) = slot.instance.take() else { return false };
        let at = SystemTime::now();
        instance.kill();
        self.kills.push(Kill { at, life: slot.life });
        self.lives[slot.life].ended = Some(SystemTime::now());
        slot.kills += 1;
        (slot.resume_at, slot.leaving, slot.works) = (None, None, false);
        slot.start_at = Some(Instant::now() + away);
        let mut done = None;
        if let Some(state) = &slot.state {
            match spoil {
                Some((how, random)) => done = Some(disk::spoil(state, how, random)),
                None if slot.kills % 5 == 2 => disk::keep_old(state),
                None => {}
            }
        }
        let data =
            json!({"slot": slot.name, "pid": instance.pid(), "away": away.as_secs_f64(), "disk": done});
        self.journal.write("kill", data);
        true
    }

    /// SIGSTOP, and SIGCONT after `length`. False if it can't be done.
    pub fn stop(&mut self, number: usize, length: Duration) -> bool {
        let slot = &mut self.slots[number];
        let Some(instance) = slot.instance.as_ref().filter(|_| slot.resume_at.is_none()) else {
            return false;
        };
        instance.signal(Signal::SIGSTOP);
        slot.resume_at = Some(Instant::now() + length);
        self.journal.write("stop", json!({"slot": slot.name, "length": length.as_secs_f64()}));
        true
    }

    /// SIGTERM; it comes back after `away`, or never. False if there is no process that could hear it.
    pub fn leave(&mut self, number: usize, away: Option<Duration>) -> bool {
        let slot = &mut self.slots[number];
        if slot.instance.is_none() || slot.resume_at.is_some() || slot.leaving.is_some() {
            return false;
        }
        if let Some(instance) = &slot.instance {
            instance.signal(Signal::SIGTERM);
        }
        slot.leaving = Some(Instant::now());
        slot.start_at = away.map(|away| Instant::now() + away);
        self.journal.write("leave", json!({"slot": slot.name}));
        true
    }

    /// Restarts an instance at once such that it dies at a crash point: `POINT:NTH`. False if there is no process.
    pub fn arm(&mut self, number: usize, at: &str) -> bool {
        // There is something to restore only where nothing is kept.
        let spoil = at.contains("restore").then_some((Disk::Deleted, 0));
        if !self.kill(number, Duration::ZERO, spoil) {
            return false;
        }
        let plain = self.slots[number].rig.clone();
        self.slots[number].rig = plain.clone().env("FLECHTWERK_CRASH_AT", at);
        self.start(number);
        let slot = &mut self.slots[number];
        slot.rig = plain;
        (slot.armed, slot.died_at) = (Some(Instant::now()), None);
        // This one comes with an orderly end, too.
        slot.revoke = at.contains("before-revoke");
        self.journal.write("arm", json!({"slot": slot.name, "value": at}));
        true
    }

    /// Starts what is due, lets go on what was stopped long enough, and looks who has ended.
    pub fn tick(&mut self) {
        for number in 0..self.slots.len() {
            let now = Instant::now();
            let slot = &mut self.slots[number];
            if slot.resume_at.is_some_and(|at| at <= now) {
                slot.resume_at = None;
                if let Some(instance) = &slot.instance {
                    instance.signal(Signal::SIGCONT);
                }
                self.journal.write("continue", json!({"slot": slot.name}));
            }
            self.look(number);
            if self.slots[number].revoke && self.works(number) {
                self.slots[number].revoke = false;
                self.leave(number, Some(Duration::ZERO));
            }
            let slot = &self.slots[number];
            if slot.instance.is_none() && slot.start_at.is_some_and(|at| at <= now) {
                self.start(number);
            }
        }
    }

    fn start(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        let instance = slot.rig.start();
        self.lives.push(Life {
            slot: number,
            pid: instance.pid(),
            log: instance.log_path().to_owned(),
            began: SystemTime::now(),
            ended: None,
        });
        slot.life = self.lives.len() - 1;
        let log = instance.log_path().file_name().map(|name| name.to_string_lossy().into_owned());
        self.journal.write("start", json!({"slot": slot.name, "pid": instance.pid(), "log": log}));
        (slot.instance, slot.start_at, slot.leaving) = (Some(instance), None, None);
        (slot.works, slot.armed, slot.revoke) = (false, None, false);
    }

    fn look(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        let Some(instance) = &mut slot.instance else { return };
        let Some(status) = instance.try_wait() else {
            if slot.leaving.is_some_and(|since| since.elapsed() > ORDERLY) {
                self.wrong.push(format!(
                    "{} has not ended {ORDERLY:?} after SIGTERM; its log is {}",
                    slot.name,
                    instance.log_path().display()
                ));
                slot.leaving = None;
                instance.kill();
            }
            return;
        };
        let log = instance.log();
        if log.contains("panicked at") {
            self.wrong.push(format!(
                "{} has panicked; its log is {}",
                slot.name,
                instance.log_path().display()
            ));
        }
        let said = |line: &str| Some(line.strip_prefix("crash point ")?.split_once(':')?.0.to_owned());
        let point = log.lines().rev().find_map(said);
        let killed = status.signal() == Some(Signal::SIGKILL as i32);
        let orderly = slot.leaving.is_some() && !(killed && point.is_some());
        // Before it has a handler, SIGTERM ends any process.
        let young = self.lives[slot.life].began.elapsed().is_ok_and(|age| age < YOUNG);
        let by_signal = status.signal() == Some(Signal::SIGTERM as i32);
        // While faults go on, one may meet an instance that is just ending: only without them the end is to be a clean one.
        if orderly && self.ending && !status.success() && !(young && by_signal) {
            self.wrong.push(format!(
                "{} ended with {status} after SIGTERM; its log is {}",
                slot.name,
                instance.log_path().display()
            ));
        }
        self.lives[slot.life].ended = Some(SystemTime::now());
        let last = log.lines().last().unwrap_or_default().to_owned();
        let data = json!({"slot": slot.name, "status": status.to_string(), "orderly": orderly, "last": last});
        self.journal.write("exit", data);
        if !orderly {
            if killed {
                self.kills.push(Kill { at: SystemTime::now(), life: slot.life });
                if let Some(point) = point {
                    slot.died_at = Some(point.clone());
                    *self.crashes.entry(point).or_default() += 1;
                }
            } else {
                self.ended_alone += 1;
            }
            slot.start_at = Some(Instant::now() + AGAIN);
        } else if !status.success() {
            self.ended_alone += 1;
        }
        (slot.instance, slot.resume_at, slot.leaving, slot.works) = (None, None, None, false);
    }

    /// True if every instance that is to run does, and none is stopped or about to come back.
    pub fn is_calm(&self) -> bool {
        self.slots
            .iter()
            .all(|slot| slot.start_at.is_none() && slot.resume_at.is_none() && slot.leaving.is_none())
    }

    /// Ends all in an orderly way, and waits for it.
    pub fn end(&mut self) {
        for number in 0..self.slots.len() {
            // Who has ended by itself meanwhile was not told to.
            self.look(number);
            if let Some(slot) = self.slots.get_mut(number)
                && slot.resume_at.take().is_some()
                && let Some(instance) = &slot.instance
            {
                instance.signal(Signal::SIGCONT);
            }
            self.leave(number, None);
            self.slots[number].start_at = None;
        }
        self.ending = true;
        while self.slots.iter().any(|slot| slot.instance.is_some()) && interrupt::check().is_ok() {
            for number in 0..self.slots.len() {
                self.look(number);
                self.slots[number].start_at = None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
