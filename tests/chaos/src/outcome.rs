//! What came of a run, and how it is told on a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flechtwerk_checkers::Violation;
use serde::Serialize;

use crate::growth::{Growth, Verdict};
use crate::judge::Figures;
use crate::numbers::Numbers;
use crate::run::{Options, report_path};
use crate::total;

/// Violations that are written out.
const SHOWN: usize = 50;

/// What came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// What must never happen.
    #[serde(serialize_with = "as_text")]
    pub violations: Vec<Violation>,
    /// What was done, by name.
    pub done: BTreeMap<String, usize>,
    /// Kills of instances that left a transaction open, and all.
    pub left_open: (usize, usize),
    /// What was looked at.
    pub figures: Figures,
    /// Deaths at crash points.
    pub crashes: BTreeMap<String, usize>,
    /// Why the run does not count, each as a line: what it was to do and did not.
    pub lacks: Vec<String>,
    /// Instances that ended by themselves, as a supervisor sees it.
    pub ended_alone: usize,
    /// What became of the sizes of processes that lived for long.
    pub growth: Vec<Growth>,
    /// Seconds from the first fault to the last.
    pub faults_took: f64,
    /// Seconds after the last fault until everything that came in was processed.
    pub caught_up: f64,
    /// Seconds of all.
    pub took: f64,
}

fn as_text<S: serde::Serializer>(violations: &[Violation], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(violations.iter().map(ToString::to_string))
}

impl Outcome {
    /// True if nothing was violated, and nothing grows.
    pub fn holds(&self) -> bool {
        self.violations.is_empty() && self.grown().next().is_none()
    }

    /// True if the run did what it was to do, so that it says something.
    pub fn counts(&self) -> bool {
        self.lacks.is_empty()
    }

    /// What grows.
    pub fn grown(&self) -> impl Iterator<Item = &Growth> {
        self.growth.iter().filter(|one| one.verdict == Verdict::Grows)
    }

    /// What was done, in numbers.
    pub fn numbers(&self) -> Numbers {
        Numbers::new(&self.done, self.left_open, &self.figures, &self.crashes)
    }
}

/// The command that plays a schedule again.
pub fn replay(options: &Options) -> String {
    let tier = &options.tier;
    let numbers = [
        ("partitions", tier.partitions.to_string()),
        ("instances", tier.instances.to_string()),
        ("records", tier.records.to_string()),
        ("keys", tier.keys.to_string()),
        ("kills", tier.kills.to_string()),
        ("stops", tier.stops.to_string()),
        ("broker-kills", tier.broker_kills.to_string()),
        ("rebalances", tier.rebalances.to_string()),
        ("network", tier.network.to_string()),
        ("crashes", tier.crashes.to_string()),
        ("disks", tier.disks.to_string()),
        ("steady", tier.steady.to_string()),
        ("minutes", (tier.span.as_secs_f64() / 60.0).to_string()),
    ];
    let mut flags: Vec<String> = numbers.iter().map(|(name, number)| format!("--{name} {number}")).collect();
    flags.extend(options.broken.first().map(|flaw| format!("--flaw {flaw}")));
    let place = if tier.nodes == 0 { "--dev".to_owned() } else { format!("--nodes {}", tier.nodes) };
    format!("SEED={} scripts/chaos {place} {}", options.seed, flags.join(" "))
}

/// What is printed at the end.
pub fn told(options: &Options, outcome: &Outcome) -> String {
    let mut text = String::new();
    let figures = &outcome.figures;
    // Writing to a string can't fail.
    let _ = writeln!(
        text,
        "seed {}: {:.0} s, {:.0} s of them with faults",
        options.seed, outcome.took, outcome.faults_took
    );
    let done: Vec<String> = outcome.done.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let _ = writeln!(text, "done: {}", done.join(", "));
    let (open, kills) = outcome.left_open;
    let _ = writeln!(text, "{open} of {kills} kills left a transaction open");
    if !outcome.crashes.is_empty() {
        let crashes = outcome.crashes.iter().map(|(point, count)| format!("{count} {point}"));
        let _ = writeln!(text, "died at crash points: {}", crashes.collect::<Vec<_>>().join(", "));
    }
    let _ = writeln!(text, "instances that ended by themselves: {}", outcome.ended_alone);
    let _ = writeln!(
        text,
        "{} inputs ({} canaries), {} outputs ({} more in aborted transactions), {} transactions by {} owners, {} abort markers, \
         {} changes, {} keys, {} stores",
        figures.inputs,
        figures.canaries,
        figures.outputs,
        figures.aborted_outputs,
        figures.transactions,
        figures.owners,
        figures.aborts,
        figures.changes,
        figures.keys,
        figures.stores,
    );
    for one in &outcome.growth {
        let _ = writeln!(
            text,
            "{} for {:.0} min: {} from {:.0} to {:.0}, {:+.1} an hour, give or take {:.1}: {}",
            one.who,
            one.minutes,
            one.what,
            one.first,
            one.last,
            one.per_hour,
            one.noise,
            one.said(),
        );
    }
    for violation in outcome.violations.iter().take(SHOWN) {
        let _ = writeln!(text, "VIOLATED {violation}");
    }
    if outcome.violations.is_empty() {
        let _ = writeln!(text, "every invariant held");
    } else {
        let _ = writeln!(text, "{} violations; play it again: {}", outcome.violations.len(), replay(options));
    }
    if !outcome.counts() {
        let _ = writeln!(text, "the run does not count, since it says too little:");
        for lack in &outcome.lacks {
            let _ = writeln!(text, "  {lack}");
        }
    }
    if outcome.holds() && outcome.counts() && options.is_part() {
        let _ = writeln!(text, "it is a part of a night; to add it to others: {}", total::how(&options.out));
    }
    let _ = writeln!(text, "report: {}", report_path(options).display());
    text
}
