//! Some thousands of histories, those that failed once, and flaws that must be caught. `make simulate` plays more of the first,
//! `make controls` looks at all flaws.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flechtwerk::simulation::Flaw;
use flechtwerk_simulation::controls::control;
use flechtwerk_simulation::shrink::shrink;
use flechtwerk_simulation::{Plan, play};

/// Seeds of this test; `make simulate` begins behind them unless told otherwise.
const SEEDS: u64 = 3_000;

#[test]
fn thousands_of_histories_hold() {
    let (next, failed, commits) = (AtomicU64::new(1), Mutex::new(Vec::new()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > SEEDS {
                        return;
                    }
                    let outcome = play(&Plan::of(seed), &[], false);
                    commits.fetch_add(outcome.commits as u64, Ordering::Relaxed);
                    if let Some(first) = outcome.violations.first() {
                        failed.lock().unwrap().push(format!("{first}; see it by: make simulate SEED={seed}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(commits.into_inner() > SEEDS * 5, "the histories hardly did anything");
}

/// A plan that once broke something stays here: one a line, and behind it what it was about.
#[test]
fn plans_that_failed_once_hold() {
    for line in include_str!("plans.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let plan: Plan = line.split_whitespace().next().unwrap_or_default().parse().unwrap();
        let outcome = play(&plan, &[], false);
        assert!(outcome.violations.is_empty(), "{line}: {:#?}", outcome.violations);
    }
}

#[test]
fn a_history_replays_exactly() {
    for seed in 1..40 {
        let plan = Plan::of(seed);
        assert_eq!(play(&plan, &[], true).trace, play(&plan, &[], true).trace, "seed {seed}");
    }
}

#[test]
fn a_failed_history_shrinks_to_what_it_needs() {
    let flaws = [Flaw::PositionTooShort];
    let plan = (1..600).map(Plan::of).find(|plan| plan.faults.len() > 2 && plan.records.len() > 8);
    let plan = plan.expect("a plan with something to leave out");
    assert!(!play(&plan, &flaws, false).violations.is_empty());
    let shrunk = shrink(&plan, &flaws);
    assert!(!play(&shrunk, &flaws, false).violations.is_empty(), "{shrunk} does not fail any more");
    assert!(shrunk.faults.is_empty(), "{shrunk} needs no fault");
    assert!(shrunk.records.len() <= 2, "{shrunk} needs two records at most");
    assert_eq!(shrunk.to_string().parse(), Ok(shrunk));
}

/// Without its defences each of these is caught within some hundred histories; the rare ones are for `make controls`.
#[test]
fn flaws_are_caught() {
    for flaw in [
        Flaw::PositionsBeforeFence,
        Flaw::OffsetsOutside,
        Flaw::StoreBeforeCommit,
        Flaw::NoFence,
        Flaw::RandomTransactionalId,
        Flaw::RestoreUncommitted,
        Flaw::StaleMetadata,
        Flaw::UnchangedByStore,
        Flaw::TombstoneDropped,
        Flaw::PositionTooFar,
        Flaw::PositionTooShort,
        Flaw::TaskKeptWhenLost,
        Flaw::StaleStore,
        Flaw::StampWithoutOwner,
        Flaw::NoStampAfterFence,
        Flaw::SentAgain,
    ] {
        let caught = control(flaw, 1..600);
        assert!(caught.by.is_some(), "{} was not caught", flaw.name());
    }
}
