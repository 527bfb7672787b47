//! From a history that fails to the shortest one that still does: without records, faults and processes that don't matter.

use flechtwerk::simulation::Flaw;
use flechtwerk_checkers::Check;

use crate::history::play;
use crate::plan::{Plan, Without};

/// Leaves out what can be left out, as long as the same invariant is broken.
pub fn shrink(plan: &Plan, flaws: &[Flaw]) -> Plan {
    let Some(check) = fails(plan, flaws).into_iter().next() else { return plan.clone() };
    let full = Plan::of(plan.seed);
    let mut best = plan.clone();
    let mut try_without = |without: Without| {
        let smaller = Plan::without(plan.seed, without);
        let still = fails(&smaller, flaws).contains(&check);
        if still {
            best = smaller;
        }
        (still, best.without.clone())
    };
    let mut without = plan.without.clone();
    loop {
        let before = without.clone();
        for index in (0..full.faults.len()).rev() {
            if !without.faults.contains(&index) {
                let mut smaller = without.clone();
                smaller.faults.push(index);
                smaller.faults.sort_unstable();
                without = try_without(smaller).1;
            }
        }
        for index in (0..full.records.len()).rev() {
            if !without.records.contains(&index) {
                let mut smaller = without.clone();
                smaller.records.push(index);
                smaller.records.sort_unstable();
                without = try_without(smaller).1;
            }
        }
        while without.processes + 1 < full.processes {
            let smaller = Without { processes: without.processes + 1, ..without.clone() };
            let (still, now) = try_without(smaller);
            without = now;
            if !still {
                break;
            }
        }
        if without == before {
            return best;
        }
    }
}

fn fails(plan: &Plan, flaws: &[Flaw]) -> Vec<Check> {
    play(plan, flaws, false).violations.into_iter().map(|violation| violation.check).collect()
}
