//! Carries out a schedule: each fault at its time, or as soon after it as it can be done. The schedule's clock waits for faults that
//! can't be done yet, and the input with it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::brokers::Lane;
use crate::fleet::Fleet;
use crate::interrupt;
use crate::journal::Journal;
use crate::network::Network;
use crate::peek::Peek;
use crate::progress::Bar;
use crate::schedule::{Change, Fault, Moment, Planned};
use crate::tier::Tier;
use crate::watch::Watchers;
use crate::workload::Pace;

/// How long a kill waits until its victim works.
const PATIENCE: Duration = Duration::from_secs(10);
/// The clock stands still when a fault is as late as this.
const LATE: Duration = Duration::from_secs(2);
/// Kills of brokers take long, one after the other.
const LATE_BROKERS: usize = 2;

/// How often a kill looks for a moment with an open transaction.
const TRIES: u32 = 8;
/// The crash point of one that goes on with fewer partitions.
const REVOKED: &str = "after-revoke";
/// How long one stays that joins for that.
const STAYS: Duration = Duration::from_secs(5);
/// How often an instance is armed until it has died at a crash point.
const ARMS: u32 = 4;

/// A fault whose time has come.
struct Pending {
    planned: Planned,
    since: Instant,
    tries: u32,
    next_try: Instant,
}

/// An instance on its way to a crash point.
struct Armed {
    slot: usize,
    point: &'static str,
    fault: Pending,
    /// Another one was sent to join its group.
    joined: bool,
}

/// What faults are done with.
pub struct Tools {
    /// Instances that may join for a while.
    pub extras: Vec<usize>,
    /// Kills brokers, where they are the rig's own.
    pub lane: Option<Lane>,
    /// Breaks requests, where there is a proxy.
    pub network: Option<Network>,
    /// Sees open transactions.
    pub peek: Peek,
}

/// Carries out one schedule.
pub struct Driver {
    queue: VecDeque<Planned>,
    /// Faults whose time has come, and since when.
    pending: Vec<Pending>,
    armed: Vec<Armed>,
    /// Extra instances that leave then.
    leaving: Vec<(Instant, usize)>,
    tier: Tier,
    seed: u64,
    tools: Tools,
    journal: Journal,
    done: BTreeMap<String, usize>,
    sampled: Instant,
}

impl Driver {
    /// Of this schedule.
    pub fn new(planned: Vec<Planned>, tier: Tier, seed: u64, tools: Tools, journal: Journal) -> Driver {
        for one in &planned {
            journal.write("planned", one);
        }
        Driver {
            queue: planned.into(),
            pending: Vec::new(),
            armed: Vec::new(),
            leaving: Vec::new(),
            tier,
            seed,
            tools,
            journal,
            done: BTreeMap::new(),
            sampled: Instant::now(),
        }
    }

    /// Carries all out, or stops when something is found.
    pub fn run(
        &mut self,
        fleet: &mut Fleet,
        watchers: &Watchers,
        pace: &Pace,
        bar: &Bar,
    ) -> anyhow::Result<()> {
        let total = self.queue.len();
        let (mut clock, mut last) = (Duration::ZERO, Instant::now());
        loop {
            let passed = last.elapsed();
            last = Instant::now();
            let late = self.pending.iter().any(|one| one.since.elapsed() > LATE);
            if !late && self.tools.lane.as_ref().is_none_or(|lane| lane.waiting() <= LATE_BROKERS) {
                clock += passed;
            }
            let part = clock.as_secs_f64() / self.tier.span.as_secs_f64().max(1.0);
            pace.reached(part);
            while self.queue.front().is_some_and(|next| next.at <= clock) {
                let now = Instant::now();
                let next = self.queue.pop_front();
                self.pending.extend(next.map(|planned| Pending {
                    planned,
                    since: now,
                    tries: 0,
                    next_try: now,
                }));
            }
            fleet.tick();
            self.arm_again(fleet);
            self.leave(fleet);
            if let Some(network) = &mut self.tools.network {
                network.tick();
            }
            let pending = std::mem::take(&mut self.pending);
            for mut one in pending {
                if !self.carry_out(fleet, &mut one) {
                    self.pending.push(one);
                } else if let Fault::Crash { slot, point, .. } = one.planned.fault
                    && let Some(name) = crash_points().get(point)
                {
                    self.armed.push(Armed { slot, point: name, fault: one, joined: false });
                }
            }
            if self.sampled.elapsed() > Duration::from_secs(5) {
                self.sampled = Instant::now();
                crate::samples::take(fleet, &self.journal);
            }
            let outputs = watchers.outputs.load(Ordering::SeqCst);
            bar.at(
                part,
                &format!(
                    "{} of {total} faults, {} written, {outputs} outputs, {} transactions; {}",
                    total - self.queue.len() - self.pending.len(),
                    pace.written(),
                    watchers.commits.load(Ordering::SeqCst),
                    self.in_short(),
                ),
            );
            let busy = self.tools.network.as_ref().is_some_and(Network::is_busy)
                || self.tools.lane.as_ref().is_some_and(|lane| lane.waiting() > 0);
            let idle = self.armed.is_empty() && self.leaving.is_empty() && !busy;
            let over = self.queue.is_empty() && self.pending.is_empty() && idle;
            if !watchers.found().is_empty() || !fleet.wrong.is_empty() || self.failure().is_some() {
                break;
            }
            interrupt::check()?;
            self.journal.written()?;
            if over && clock >= self.tier.span {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // Who is stopped goes on, who is away comes back.
        let until = Instant::now() + Duration::from_secs(60);
        while !fleet.is_calm() && Instant::now() < until {
            interrupt::check()?;
            fleet.tick();
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// What was done so far, by name.
    pub fn done(&self) -> BTreeMap<String, usize> {
        let mut done = self.done.clone();
        if let Some(lane) = &self.tools.lane {
            done.insert("broker_kill".to_owned(), lane.kills());
        }
        if let Some(network) = &self.tools.network {
            done.extend(network.done());
        }
        done
    }

    /// What was done, without details.
    fn in_short(&self) -> String {
        let done = self.done();
        let words: Vec<String> = done
            .iter()
            .filter(|(name, _)| !name.contains(' '))
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        words.join(", ")
    }

    /// What went wrong with the cluster itself.
    pub fn failure(&self) -> Option<String> {
        self.tools.lane.as_ref().and_then(Lane::failure)
    }

    /// Ends it; gives the network, through which the instances go on.
    pub fn end(self) -> Option<Network> {
        self.tools.network
    }

    fn count(&mut self, what: &str) {
        *self.done.entry(what.to_owned()).or_default() += 1;
    }

    /// Another try for those that were armed and have not died at their point: they never came there, or something else ended them.
    fn arm_again(&mut self, fleet: &mut Fleet) {
        for one in self.armed.iter_mut().filter(|one| one.point == REVOKED && !one.joined) {
            // Partitions are taken from one that goes on only when another one joins.
            if fleet.works(one.slot)
                && let Some(extra) = self.tools.extras.iter().copied().find(|slot| fleet.begin(*slot))
            {
                one.joined = true;
                self.leaving.push((Instant::now() + STAYS, extra));
            }
        }
        let over = |one: &mut Armed| !fleet.is_armed(one.slot);
        for Armed { slot, point, fault: mut one, .. } in self.armed.extract_if(.., over).collect::<Vec<_>>() {
            one.tries += 1;
            if fleet.has_died_at(slot, point) || one.tries >= ARMS {
                continue;
            }
            // The first pass comes most surely.
            if let Fault::Crash { nth, .. } = &mut one.planned.fault {
                *nth = 1;
            }
            one.since = Instant::now();
            self.pending.push(one);
        }
    }

    /// Extra instances whose time is over.
    fn leave(&mut self, fleet: &mut Fleet) {
        let now = Instant::now();
        self.leaving.retain(|(at, slot)| *at > now || (fleet.runs(*slot) && !fleet.leave(*slot, None)));
    }

    /// True if it was done.
    fn carry_out(&mut self, fleet: &mut Fleet, pending: &mut Pending) -> bool {
        let (planned, since) = (&pending.planned, pending.since);
        if let Fault::Kill { slot, .. } | Fault::Stop { slot, .. } | Fault::Crash { slot, .. } = planned.fault
            && fleet.is_armed(slot)
        {
            return false;
        }
        match &planned.fault {
            Fault::Kill { slot, moment, disk, away } => {
                let patient = since.elapsed() < PATIENCE;
                if *moment == Moment::Working && patient {
                    if !fleet.works(*slot) || pending.next_try > Instant::now() {
                        return false;
                    }
                    let random = random(self.seed, planned.at, pending.tries);
                    pending.tries += 1;
                    pending.next_try = Instant::now() + Duration::from_millis(20 + random % 200);
                    if pending.tries <= TRIES
                        && !fleet.with_stopped(*slot, || self.tools.peek.is_transaction_open())
                    {
                        return false;
                    }
                }
                let random = random(self.seed, planned.at, 0);
                if !fleet.kill(*slot, *away, disk.map(|disk| (disk, random))) {
                    return false;
                }
                self.count("kill");
                if let Some(disk) = disk {
                    self.count(&format!("disk {disk:?}").to_lowercase());
                }
            }
            Fault::Stop { slot, length } => {
                let ready = fleet.works(*slot) || since.elapsed() > PATIENCE;
                if !ready || !fleet.stop(*slot, *length) {
                    return false;
                }
                self.count("stop");
            }
            Fault::Broker { node, away } => {
                if let Some(lane) = &mut self.tools.lane {
                    lane.order(*node, *away);
                }
            }
            Fault::Rebalance { change, length } => {
                if !self.rebalance(fleet, *change, *length) {
                    return false;
                }
                self.journal.write("rebalance", json!({"change": change, "length": length.as_secs_f64()}));
                self.count("rebalance");
            }
            Fault::Network { api, harm, nth } => {
                if let Some(network) = &mut self.tools.network {
                    network.break_one(*api, *harm, *nth);
                }
            }
            Fault::Crash { slot, point, nth } => {
                let Some(name) = crash_points().get(*point).copied() else { return true };
                let ready = fleet.works(*slot) || since.elapsed() > PATIENCE;
                if !ready || !fleet.arm(*slot, &format!("{name}:{nth}")) {
                    return false;
                }
                self.count("crash point armed");
            }
        }
        true
    }

    fn rebalance(&mut self, fleet: &mut Fleet, change: Change, length: Duration) -> bool {
        let until = Instant::now() + length;
        let all = self.tier.steady..self.tier.instances;
        match change {
            Change::Join => {
                let Some(slot) = self.tools.extras.iter().copied().find(|slot| fleet.begin(*slot)) else {
                    return false;
                };
                self.leaving.push((until, slot));
                true
            }
            Change::Crowd => {
                let came = self.tools.extras.iter().copied().filter(|slot| fleet.begin(*slot));
                self.leaving.extend(came.map(|slot| (until + Duration::from_secs(5), slot)));
                true
            }
            Change::Leave(slot) => fleet.leave(slot, Some(length)),
            Change::DownTo(stays) => {
                all.filter(|slot| *slot != stays).filter(|slot| fleet.leave(*slot, Some(length))).count() > 0
            }
            Change::All => all.filter(|slot| fleet.leave(*slot, Some(Duration::ZERO))).count() > 0,
        }
    }
}

/// A number for a fault.
fn random(seed: u64, at: Duration, again: u32) -> u64 {
    let mixed = seed ^ (at.as_millis() as u64) << 8 ^ u64::from(again);
    // The finaliser of SplitMix64.
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The crash points of the program under test, by name; none if it was built without.
pub fn crash_points() -> Vec<&'static str> {
    #[cfg(feature = "crash-points")]
    return flechtwerk::CrashPoint::ALL.iter().map(|point| point.name()).collect();
    #[cfg(not(feature = "crash-points"))]
    Vec::new()
}
