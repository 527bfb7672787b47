//! A process dies at each step of the runtime (S3, S4, S5), with its state in memory and on disk: what is left in the cluster
//! is what that step leaves, and whoever comes after it makes everything exact.
//!
//! `flechtwerk::CrashPoint` lists the steps. Each is in one of the tables here, with what it must leave behind, so that the
//! point is known to be where it says.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use flechtwerk::CrashPoint::{self, *};
use flechtwerk_tests::exact::End;
use flechtwerk_tests::job::{logged, wait_for_tasks};
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Case, Exact, Instance, Load, Rig, STOP, wait_within};
use nix::sys::signal::Signal;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
/// Time for an instance to start and get to its point: another member may have to be given up first.
const DEATH: Duration = Duration::from_secs(60);

/// Where state is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Memory,
    Disk,
}

/// What a process that died leaves in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Nothing that counts; there may be an open transaction.
    Nothing,
    /// Records in an open transaction.
    Open,
    /// A batch that counts. `stored`: the store on disk has it as well.
    Committed { stored: bool },
    /// It was not heard whether the batch counts.
    Unknown,
}

use Left::{Committed, Nothing, Open, Unknown};

/// A point, at which visit of it the process dies, and what it leaves.
type Death = (CrashPoint, u32, Left);

const JOINING: &[Death] = &[
    (BeforeJoin, 1, Nothing),
    (AfterJoin, 1, Nothing),
    // The first one only brings the member's id; the second one makes it the leader of the group.
    (JoinSent, 1, Nothing),
    (JoinSent, 2, Nothing),
    (JoinAnswered, 1, Nothing),
    (JoinAnswered, 2, Nothing),
    (BeforeAssign, 1, Nothing),
    (AfterAssign, 1, Nothing),
];

const FENCING: &[Death] = &[
    (BeforeFence, 1, Nothing),
    (FenceSent, 1, Nothing),
    (FenceAnswered, 1, Nothing),
    (AfterFence, 1, Nothing),
];

const RESTORING: &[Death] = &[
    (BeforeRestore, 1, Nothing),
    (RestoreStart, 1, Nothing),
    (RestoreMiddle, 1, Nothing),
    (RestoreMiddle, 2, Nothing),
    (RestoreEnd, 1, Nothing),
    (AfterRestore, 1, Nothing),
];

const SENDING: &[Death] = &[
    (BeforeBegin, 1, Nothing),
    (AfterBegin, 1, Nothing),
    (OffsetsSent, 1, Nothing),
    (OffsetsAnswered, 1, Nothing),
    (AfterSendOffsets, 1, Nothing),
    (AfterProduceOutputs, 1, Nothing),
    (AfterProduceChangelog, 1, Nothing),
    (ProduceSent, 1, Nothing),
    (ProduceSent, 2, Nothing),
    (ProduceAnswered, 1, Open),
    (ProduceAnswered, 2, Open),
];

const COMMITTING: &[Death] = &[
    (BeforeEndTxn, 1, Open),
    (EndTxnSent, 1, Unknown),
    (EndTxnAnswered, 1, Committed { stored: false }),
    (AfterEndTxn, 1, Committed { stored: false }),
    (BeforeStoreWrite, 1, Committed { stored: false }),
    (AfterStoreWrite, 1, Committed { stored: true }),
];

/// Of an instance that another one joins.
const REVOKING: &[Death] = &[(BeforeRevoke, 1, Unknown), (AfterRevoke, 1, Unknown)];

#[test]
fn each_point_is_visited() {
    let tables = [JOINING, FENCING, RESTORING, SENDING, COMMITTING, REVOKING];
    let visited: BTreeSet<CrashPoint> = tables.concat().into_iter().map(|(point, ..)| point).collect();
    assert_eq!(visited, CrashPoint::ALL.iter().copied().collect());
}

#[test]
fn what_is_no_point_is_refused_at_the_start() {
    let case = Case::new(RIG, "tally", 1, &["words", "joined"]);
    let (status, _, stderr) = case.rig.env("FLECHTWERK_CRASH_AT", "before-lunch").run(&["run"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("there is no crash point `before-lunch`"), "{stderr}");
    assert!(stderr.contains("before-end-txn"), "{stderr}");
}

/// One stage, and what is looked at while its instances die.
struct Trial {
    case: Case,
    kept: Kept,
    exact: Exact,
    round: usize,
}

impl Trial {
    fn new(kept: Kept, partitions: i32) -> Trial {
        let case = Case::new(RIG, "tally", partitions, &["words", "joined"])
            .arg("--session-timeout", "3s")
            .arg("--heartbeat-interval", "300ms")
            // No transaction ends by itself while it is looked at.
            .arg("--transaction-timeout", "5m");
        let exact = Exact::new(&case, partitions);
        Trial { case, kept, exact, round: 0 }
    }

    /// Instances come back under an id, and need not wait for the session of the one that died.
    fn under_an_id(self) -> Trial {
        Trial { case: self.case.arg("--instance-id", "a"), ..self }
    }

    fn state_dir(&self, name: &str) -> PathBuf {
        self.case.rig.dir().join(name)
    }

    /// How the instance is started that keeps its state here.
    fn rig(&self, name: &str) -> Rig {
        let rig = self.case.rig.clone();
        match self.kept {
            Kept::Memory => rig,
            Kept::Disk => {
                rig.arg("--store", "rocksdb").arg("--state-dir", &self.state_dir(name).to_string_lossy())
            }
        }
    }

    /// Writes a round of words: sums that grow, and one that comes and goes.
    fn write(&mut self) {
        let gone = if self.round.is_multiple_of(2) { "x" } else { "delete" };
        self.round += 1;
        let words = [("a", "x"), ("b", "x"), ("gone", gone), ("a", "x"), ("c", "x")];
        self.case.kafka.write(self.case.topic("words"), words.map(|(key, value)| Write::new(key, value)));
    }

    fn end(&self) -> End {
        self.exact.end(&[self.case.topic("joined"), &self.case.changelog()])
    }

    /// Processes all that there is, stops cleanly, and looks at everything. How often something was restored.
    fn complete(&self) -> usize {
        let mut instance = self.rig("state").start();
        // All may be processed already: it is to restore what it has to.
        wait_for_tasks(&instance, 1);
        self.exact.wait_processed(&self.case);
        assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
        self.check(&["state"]);
        logged(&instance, " restored ")
    }

    fn check(&self, names: &[&str]) {
        let state_dirs: Vec<PathBuf> = match self.kept {
            Kept::Memory => Vec::new(),
            Kept::Disk => names.iter().map(|name| self.state_dir(name)).collect(),
        };
        self.exact.check(&self.case, &state_dirs);
    }

    /// An instance that dies at its point, for each of them; and after each one that comes back.
    fn die_and_complete(mut self, deaths: &[Death], mut before: impl FnMut(&Trial)) {
        self.write();
        self.complete();
        for death in deaths {
            let (point, _, left) = *death;
            before(&self);
            self.write();
            let end = self.end();
            assert_eq!(end.stable, end.high, "nothing is open before {}", point.name());
            let mut instance = self.rig("state").env("FLECHTWERK_CRASH_AT", &asked(death)).start();
            assert_died(&mut instance, death);
            self.assert_left(end, death);
            let restores = self.complete();
            println!("{:?} {}: {restores} restored", self.kept, asked(death));
            // A store on disk is used again where it has what is committed (S4.8).
            let reused = matches!(left, Nothing | Open | Committed { stored: true });
            if self.kept == Kept::Disk && left != Unknown && !RESTORING.contains(death) {
                assert_eq!(restores == 0, reused, "after {}: {restores} restored", point.name());
            }
        }
        self.exact.check_chain(&self.case);
    }

    /// What lies in outputs and changelog, before anybody comes back.
    fn assert_left(&self, before: End, death: &Death) {
        let (point, _, left) = *death;
        match left {
            Nothing => assert_eq!(self.end().stable, before.stable, "{}: a commit", point.name()),
            Open => {
                let now = self.end();
                assert_eq!(now.stable, before.stable, "{}: a commit", point.name());
                assert!(now.high > before.high, "{}: nothing is open", point.name());
            }
            // By itself: nobody else ends the transaction.
            Committed { .. } => self.exact.wait_settled(&self.case),
            Unknown => {}
        }
    }
}

/// What the process is told.
fn asked((point, visit, _): &Death) -> String {
    format!("{}:{visit}", point.name())
}

/// Waits for the process to die, by its own hand, at its point.
#[track_caller]
fn assert_died(instance: &mut Instance, death: &Death) {
    let what = format!("death at {}", asked(death));
    wait_within(DEATH, &what, || instance.try_wait().is_some());
    let status = instance.try_wait().expect("a status");
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "{what}; log:\n{}", instance.log());
    let line = format!("crash point {}: the process kills itself\n", death.0.name());
    assert_eq!(logged(instance, &line), 1, "{what}; log:\n{}", instance.log());
}

fn joining(kept: Kept) {
    Trial::new(kept, 1).die_and_complete(JOINING, |_| {});
}

fn fencing(kept: Kept) {
    Trial::new(kept, 1).under_an_id().die_and_complete(FENCING, |_| {});
}

fn restoring(kept: Kept) {
    let trial = Trial::new(kept, 1).under_an_id();
    // More than is read at once.
    let large = (0..12).map(|n| Write::new(&format!("large {n}"), "grow:900000"));
    trial.case.kafka.write(trial.case.topic("words"), large);
    trial.die_and_complete(RESTORING, |trial| {
        if trial.kept == Kept::Disk {
            std::fs::remove_dir_all(trial.state_dir("state")).expect("a state folder");
        }
    });
}

fn sending(kept: Kept) {
    Trial::new(kept, 1).under_an_id().die_and_complete(SENDING, |_| {});
}

fn committing(kept: Kept) {
    Trial::new(kept, 1).under_an_id().die_and_complete(COMMITTING, |_| {});
}

/// Two tasks under load; a second instance joins, and the first one dies of it.
fn revoking(kept: Kept) {
    let trial = Trial::new(kept, 2);
    for death in REVOKING {
        let load = Load::start(&trial.case.kafka, trial.case.topic("words"), 500);
        let mut first = trial.rig("first").env("FLECHTWERK_CRASH_AT", &asked(death)).start();
        wait_for_tasks(&first, 2);
        let mut second = trial.rig("second").start();
        assert_died(&mut first, death);
        // It takes everything over, and gives half of it to the one that comes back.
        wait_for_tasks(&second, 2);
        let mut back = trial.rig("first").start();
        wait_for_tasks(&back, 1);
        load.finish();
        trial.exact.wait_processed(&trial.case);
        for instance in [&mut second, &mut back] {
            assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
        }
        trial.check(&["first", "second"]);
    }
    trial.exact.check_chain(&trial.case);
}

macro_rules! with_both_stores {
    ($($name:ident)*) => {
        mod crash_in_memory {
            $(#[test] fn $name() { super::$name(super::Kept::Memory); })*
        }

        mod crash_on_disk {
            $(#[test] fn $name() { super::$name(super::Kept::Disk); })*
        }
    };
}

with_both_stores!(joining fencing restoring sending committing revoking);
