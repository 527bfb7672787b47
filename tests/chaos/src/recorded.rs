//! A run as its folder tells it afterwards, from the lines of its log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::growth::{Growth, growth};
use crate::journal::{Entry, FILE};
use crate::judge::Figures;
use crate::numbers::Numbers;
use crate::tier::Tier;

/// A run that has come to its end.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its seed.
    pub seed: u64,
    /// What it was told to do.
    pub tier: Tier,
    /// Rules that were broken on purpose.
    pub broken: Vec<String>,
    /// What was violated.
    pub violations: Vec<String>,
    /// What was done.
    pub numbers: Numbers,
    /// Seconds of all.
    pub took: f64,
    /// What became of memory, threads and files.
    pub growth: Vec<Growth>,
}

/// The line with which a log begins.
#[derive(Deserialize)]
struct Begin {
    seed: u64,
    tier: Tier,
    #[serde(default)]
    broken: Vec<String>,
}

/// The line with which it ends.
#[derive(Deserialize)]
struct End {
    violations: Vec<String>,
    done: BTreeMap<String, usize>,
    left_open: (usize, usize),
    figures: Figures,
    #[serde(default)]
    crashes: BTreeMap<String, usize>,
    took: f64,
}

/// Of each line.
#[derive(Deserialize)]
struct Head {
    at: f64,
    event: String,
}

/// Reads a run's folder.
pub fn read(folder: &Path) -> anyhow::Result<Recorded> {
    let path = folder.join(FILE);
    let file =
        File::open(&path).with_context(|| format!("{} is not the folder of a run", folder.display()))?;
    let (mut begin, mut end, mut samples) = (None::<Begin>, None::<End>, Vec::new());
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let place = || format!("{} line {}", path.display(), number + 1);
        let line = line.with_context(place)?;
        // Of a run that was cut off the last line may be half a line: then its end is missing as well.
        let Ok(Head { at, event }) = serde_json::from_str(&line) else { continue };
        match event.as_str() {
            "run" => begin = Some(serde_json::from_str(&line).with_context(place)?),
            "outcome" => end = Some(serde_json::from_str(&line).with_context(place)?),
            "sample" | "disk" => {
                let data = serde_json::from_str(&line).with_context(place)?;
                samples.push(Entry { at: Duration::try_from_secs_f64(at).with_context(place)?, event, data });
            }
            _ => {}
        }
    }
    let Some(Begin { seed, tier, broken }) = begin else {
        bail!("{} does not begin with a run", path.display());
    };
    let Some(end) = end else {
        bail!("the run in {} has not come to its end: {} has no outcome", folder.display(), path.display());
    };
    Ok(Recorded {
        seed,
        tier,
        broken,
        numbers: Numbers::new(&end.done, end.left_open, &end.figures, &end.crashes),
        violations: end.violations,
        took: end.took,
        growth: growth(&samples),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::journal::Journal;
    use crate::outcome::Outcome;
    use crate::tier::Name;

    #[test]
    fn what_a_run_writes_is_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let journal = Journal::create(&dir.path().join(FILE)).expect("a journal");
        let tier = Name::Nightly.tier();
        journal.write("run", json!({"seed": 7, "tier": tier, "broken": ["NoFence"]}));
        journal.write("sample", json!({"slot": "i0", "pid": 1, "memory": 2}));
        let error = read(dir.path()).expect_err("it has no end").to_string();
        assert!(error.contains("has not come to its end"), "{error}");
        let violation = flechtwerk_checkers::Violation::new(flechtwerk_checkers::Check::Tiling, "fork", "a");
        let outcome = Outcome {
            violations: vec![violation],
            done: BTreeMap::from([("stop".to_owned(), 3), ("disk old".to_owned(), 2)]),
            left_open: (4, 9),
            crashes: BTreeMap::from([("after-begin".to_owned(), 2)]),
            figures: Figures { inputs: 100, transactions: 8, ..Figures::default() },
            took: 1.5,
            ..Outcome::default()
        };
        journal.write("outcome", &outcome);
        let run = read(dir.path()).expect("a run");
        assert_eq!((run.seed, &run.tier, run.took), (7, &tier, 1.5));
        assert_eq!((run.broken, run.violations), (vec!["NoFence".to_owned()], vec!["I1 fork: a".to_owned()]));
        assert_eq!(run.numbers, outcome.numbers());
        let numbers = run.numbers;
        assert_eq!((numbers.kills, numbers.open, numbers.stops, numbers.disks), (9, 4, 3, 2));
        assert_eq!((numbers.records, numbers.transactions, numbers.deaths("after-begin")), (100, 8, 2));
    }

    #[test]
    fn a_folder_without_a_run_is_told() {
        let dir = tempfile::tempdir().expect("a folder");
        let error = format!("{:#}", read(dir.path()).expect_err("nothing is there"));
        assert!(error.contains("is not the folder of a run"), "{error}");
        std::fs::write(dir.path().join(FILE), "{\"at\": 1, \"event\": \"start\"}\n{\"at\"").expect("a file");
        let error = format!("{:#}", read(dir.path()).expect_err("no run"));
        assert!(error.contains("does not begin with a run"), "{error}");
    }
}
