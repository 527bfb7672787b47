//! Runs histories with a flaw switched on until a check catches it, and the same histories with only its defences off.

use std::time::{Duration, Instant};

use flechtwerk::simulation::Flaw;
use flechtwerk_checkers::Violation;

use crate::history::play;
use crate::plan::Plan;

/// What came of a control.
#[derive(Debug)]
pub struct Caught {
    /// What was broken.
    pub flaw: Flaw,
    /// The first history that was caught, with what was found in it.
    pub by: Option<(Plan, Vec<Violation>)>,
    /// Histories until then.
    pub histories: u64,
    /// How long that took.
    pub time: Duration,
    /// With only the defences switched off: how many of `paired` histories were caught, and the first.
    pub defences: (u64, Option<Violation>),
    /// Histories of the paired run.
    pub paired: u64,
}

/// Looks for the first of `seeds` histories that is caught.
pub fn control(flaw: Flaw, seeds: std::ops::Range<u64>) -> Caught {
    let begun = Instant::now();
    let mut on = vec![flaw];
    on.extend(flaw.defences());
    let mut histories = 0;
    let mut by = None;
    for seed in seeds.clone() {
        histories += 1;
        let plan = Plan::of(seed);
        let outcome = play(&plan, &on, false);
        if !outcome.violations.is_empty() {
            by = Some((plan, outcome.violations));
            break;
        }
    }
    let time = begun.elapsed();
    let paired = if flaw.defences().is_empty() { 0 } else { histories };
    let mut defences = (0, None);
    for seed in seeds.take(paired as usize) {
        let outcome = play(&Plan::of(seed), flaw.defences(), false);
        if let Some(first) = outcome.violations.into_iter().next() {
            defences.0 += 1;
            defences.1.get_or_insert(first);
        }
    }
    Caught { flaw, by, histories, time, defences, paired }
}
