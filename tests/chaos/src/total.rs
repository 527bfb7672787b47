//! Several runs added up: the numbers of a night may be reached in several runs, by one rule with a single one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::growth::Verdict;
use crate::numbers::{Numbers, OPEN_SHARE, deaths_wanted};
use crate::recorded::{self, Recorded};
use crate::tier::Tier;

/// The runs, and their sum.
pub struct Total {
    /// The runs with their folders.
    pub runs: Vec<(PathBuf, Recorded)>,
    /// All that they did.
    pub sum: Numbers,
}

impl Total {
    /// Reads the folders of runs.
    pub fn read(folders: &[PathBuf]) -> anyhow::Result<Total> {
        let mut runs: Vec<(PathBuf, Recorded)> = Vec::new();
        for folder in folders {
            let run = recorded::read(folder)?;
            // Nothing takes the same time twice, so copies of a folder are known as well.
            let same = |(_, other): &&(PathBuf, Recorded)| (other.seed, other.took) == (run.seed, run.took);
            if let Some((other, _)) = runs.iter().find(same) {
                bail!("{} is the run of {} once more", folder.display(), other.display());
            }
            runs.push((folder.clone(), run));
        }
        Ok(Total::new(runs))
    }

    fn new(runs: Vec<(PathBuf, Recorded)>) -> Total {
        let mut sum = Numbers::default();
        runs.iter().for_each(|(_, run)| sum.add(&run.numbers));
        Total { runs, sum }
    }

    /// Why they don't count as a run of the tier, each as a line; nothing: they do.
    pub fn lacks(&self, tier: &Tier, points: &[&str]) -> Vec<String> {
        let mut lacks = Vec::new();
        for (folder, run) in &self.runs {
            let of = |what: String| format!("{}: {what}", folder.display());
            if !run.violations.is_empty() {
                let first = run.violations.first().map_or("", String::as_str);
                lacks.push(of(format!("{} violations, the first: {first}", run.violations.len())));
            }
            if !run.broken.is_empty() {
                lacks.push(of(format!("it was broken on purpose: {}", run.broken.join(", "))));
            }
            let grown = run.growth.iter().filter(|one| one.verdict == Verdict::Grows);
            lacks.extend(grown.map(|one| of(format!("{} of {} grew", one.what, one.who))));
            let sizes = [
                ("brokers", u64::from(run.tier.nodes), u64::from(tier.nodes)),
                ("instances", run.tier.instances as u64, tier.instances as u64),
                ("partitions", run.tier.partitions.max(0) as u64, tier.partitions.max(0) as u64),
            ];
            let small = sizes.into_iter().filter(|(_, has, wanted)| has < wanted);
            lacks.extend(small.map(|(what, has, wanted)| of(format!("{what}: {has} of {wanted}"))));
        }
        lacks.extend(self.sum.lacks(tier, points));
        lacks
    }

    /// The numbers as a table: what is wanted, the sum, and each run.
    pub fn table(&self, tier: &Tier, points: &[&str]) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        for (number, (folder, run)) in self.runs.iter().enumerate() {
            let _ = writeln!(
                text,
                "run {}: {}, seed {}, {:.0} min",
                number + 1,
                folder.display(),
                run.seed,
                run.took / 60.0
            );
        }
        let runs: Vec<&Numbers> = self.runs.iter().map(|(_, run)| &run.numbers).collect();
        let mut row = |name: &str, wanted: String, cells: Vec<String>| {
            let _ = write!(text, "{name:<48}{wanted:>10}");
            for cell in &cells {
                let _ = write!(text, "{cell:>12}");
            }
            text.push('\n');
        };
        let heads = (1..=runs.len()).map(|number| format!("run {number}"));
        row("", "wanted".to_owned(), std::iter::once("sum".to_owned()).chain(heads).collect());
        let all = || std::iter::once(&self.sum).chain(runs.iter().copied());
        let of_each: Vec<_> = all().map(|one| one.rows(tier)).collect();
        for (index, (name, _, wanted)) in self.sum.rows(tier).into_iter().enumerate() {
            let cells = of_each.iter().filter_map(|rows| Some(rows.get(index)?.1.to_string()));
            row(name, wanted.map_or_else(String::new, |wanted| wanted.to_string()), cells.collect());
        }
        let shares = all().map(|one| format!("{:.1} %", one.open_share()));
        row("share of kills that left a transaction open", format!("{OPEN_SHARE} %"), shares.collect());
        for point in points {
            let deaths = all().map(|one| one.deaths(point).to_string()).collect();
            row(&format!("deaths at {point}"), deaths_wanted(tier).to_string(), deaths);
        }
        let violations = self.runs.iter().map(|(_, run)| run.violations.len());
        let cells = std::iter::once(violations.clone().sum::<usize>()).chain(violations);
        row("violations", "0".to_owned(), cells.map(|count| count.to_string()).collect());
        text
    }
}

/// Reads, prints, and says whether the runs count as one of this tier.
pub fn add_up(folders: &[PathBuf], tier: &Tier, points: &[&str]) -> anyhow::Result<bool> {
    let total = Total::read(folders)?;
    print!("{}", total.table(tier, points));
    let lacks = total.lacks(tier, points);
    if lacks.is_empty() {
        println!("every number is reached, and every invariant held");
    } else {
        println!("they don't count:");
        lacks.iter().for_each(|lack| println!("  {lack}"));
    }
    Ok(lacks.is_empty())
}

/// The line that adds up this run and others.
pub fn how(folder: &Path) -> String {
    format!("scripts/chaos add-up {} FOLDER..", folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::tests::enough;
    use crate::tier::Name;

    const POINTS: [&str; 2] = ["after-begin", "before-fence"];

    fn run(tier: &Tier, numbers: Numbers) -> Recorded {
        Recorded {
            seed: 1,
            tier: tier.clone(),
            broken: Vec::new(),
            violations: Vec::new(),
            numbers,
            took: 60.0,
            growth: Vec::new(),
        }
    }

    fn total(runs: Vec<Recorded>) -> Total {
        Total::new(runs.into_iter().enumerate().map(|(at, run)| (format!("run{at}").into(), run)).collect())
    }

    #[test]
    fn what_one_lacks_another_has() {
        let tier = Name::Nightly.tier();
        let few = Numbers { crashes: [("after-begin".to_owned(), 5)].into(), ..enough(&tier) };
        let rest = Numbers { crashes: [("before-fence".to_owned(), 5)].into(), ..Numbers::default() };
        let one = total(vec![run(&tier, few.clone())]);
        assert_eq!(one.lacks(&tier, &POINTS), ["deaths at before-fence: 0 of 5"]);
        let both = total(vec![run(&tier, few), run(&tier, rest)]);
        assert_eq!(both.lacks(&tier, &POINTS), Vec::<String>::new());
        let table = both.table(&tier, &POINTS);
        let line = |name: &str| table.lines().find(|line| line.starts_with(name)).expect("a line").to_owned();
        let words = |name: &str| {
            let line = line(name);
            line[name.len()..].split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(words("deaths at before-fence"), ["5", "5", "0", "5"]);
        assert_eq!(words("SIGKILLs of instances"), ["1000", "1000", "1000", "0"]);
        assert_eq!(
            words("share of kills that left a transaction open"),
            ["30", "%", "30.0", "%", "30.0", "%", "0.0", "%"]
        );
        assert_eq!(words("violations"), ["0", "0", "0", "0"]);
    }

    #[test]
    fn one_violation_is_too_much_and_so_is_a_run_that_was_broken_on_purpose() {
        let tier = Name::Nightly.tier();
        let good = run(&tier, enough(&tier));
        let bad = Recorded { violations: vec!["I1 fork: a".to_owned()], ..good.clone() };
        let lacks = total(vec![good.clone(), bad]).lacks(&tier, &POINTS);
        assert_eq!(lacks, ["run1: 1 violations, the first: I1 fork: a"]);
        let broken = Recorded { broken: vec!["NoFence".to_owned()], ..good.clone() };
        let lacks = total(vec![broken, good.clone()]).lacks(&tier, &POINTS);
        assert_eq!(lacks, ["run0: it was broken on purpose: NoFence"]);
        let growth = crate::growth::Growth {
            who: "i0".into(),
            minutes: 60.0,
            what: "threads",
            first: 1.0,
            last: 9.0,
            per_hour: 8.0,
            noise: 0.1,
            steps: 0,
            verdict: Verdict::Grows,
        };
        let grown = Recorded { growth: vec![growth], ..good };
        assert_eq!(total(vec![grown]).lacks(&tier, &POINTS), ["run0: threads of i0 grew"]);
    }

    #[test]
    fn a_smaller_cluster_is_none_of_the_tier() {
        let tier = Name::Nightly.tier();
        let small = Tier { nodes: 0, partitions: 4, instances: 2, ..tier.clone() };
        let lacks = total(vec![run(&small, enough(&tier))]).lacks(&tier, &POINTS);
        assert_eq!(lacks, ["run0: brokers: 0 of 3", "run0: instances: 2 of 3", "run0: partitions: 4 of 8"]);
    }

    #[test]
    fn no_run_counts_twice() {
        let dir = tempfile::tempdir().expect("a folder");
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        for folder in [&one, &two] {
            std::fs::create_dir(folder).expect("a folder");
            let journal = crate::journal::Journal::create(&folder.join(crate::journal::FILE)).expect("a log");
            journal.write("run", serde_json::json!({"seed": 7, "tier": Name::Dev.tier()}));
            let took = if *folder == one { 1.0 } else { 2.0 };
            journal.write("outcome", crate::outcome::Outcome { took, ..Default::default() });
        }
        assert_eq!(Total::read(&[one.clone(), two.clone()]).expect("two runs").runs.len(), 2);
        let again = dir.path().join("two/../one");
        let error = Total::read(&[one.clone(), two, again]).err().expect("the first once more").to_string();
        assert!(error.contains("once more"), "{error}");
        std::fs::create_dir(dir.path().join("copy")).expect("a folder");
        std::fs::copy(one.join("log.jsonl"), dir.path().join("copy/log.jsonl")).expect("a copy");
        assert!(Total::read(&[one, dir.path().join("copy")]).is_err());
    }
}
