//! What was done and looked at, in numbers, and whether it is enough: the rule by which a run counts, alone or added to others.

use std::collections::BTreeMap;

use crate::judge::Figures;
use crate::tier::Tier;

/// The share of kills that must have left a transaction open, in hundredths.
pub const OPEN_SHARE: usize = 30;
/// A crash point counts as tried when so many have died there.
pub const ENOUGH: usize = 5;

/// The numbers of one run, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// SIGKILLs of instances, at crash points and elsewhere.
    pub kills: usize,
    /// Those that left a transaction open.
    pub open: usize,
    /// Those after which the state on disk was another.
    pub disks: usize,
    /// SIGSTOPs of instances.
    pub stops: usize,
    /// SIGKILLs of brokers.
    pub broker_kills: usize,
    /// Requests and connections that were broken.
    pub network: usize,
    /// Changes of who takes part.
    pub rebalances: usize,
    /// Records that came in.
    pub records: usize,
    /// Transactions of all tasks.
    pub transactions: usize,
    /// Deaths at crash points.
    pub crashes: BTreeMap<String, usize>,
}

/// A number: its name, what it is, and what the tier wants.
pub type Row = (&'static str, usize, Option<usize>);

impl Numbers {
    /// Of what a run tells. `left_open`: kills that left a transaction open, and all.
    pub fn new(
        done: &BTreeMap<String, usize>,
        left_open: (usize, usize),
        figures: &Figures,
        crashes: &BTreeMap<String, usize>,
    ) -> Numbers {
        let of = |name: &str| done.get(name).copied().unwrap_or(0);
        Numbers {
            kills: left_open.1,
            open: left_open.0,
            disks: done.iter().filter(|(name, _)| name.starts_with("disk ")).map(|(_, count)| count).sum(),
            stops: of("stop"),
            broker_kills: of("broker_kill"),
            network: of("network"),
            rebalances: of("rebalance"),
            records: figures.inputs,
            transactions: figures.transactions,
            crashes: crashes.clone(),
        }
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Numbers) {
        self.kills += other.kills;
        self.open += other.open;
        self.disks += other.disks;
        self.stops += other.stops;
        self.broker_kills += other.broker_kills;
        self.network += other.network;
        self.rebalances += other.rebalances;
        self.records += other.records;
        self.transactions += other.transactions;
        for (point, count) in &other.crashes {
            *self.crashes.entry(point.clone()).or_default() += count;
        }
    }

    /// The numbers by name, with what the tier wants of each.
    pub fn rows(&self, tier: &Tier) -> Vec<Row> {
        vec![
            ("SIGKILLs of instances", self.kills, Some(tier.kills)),
            ("of these, left a transaction open", self.open, None),
            ("of these, with another state on disk afterwards", self.disks, Some(tier.disks)),
            ("SIGSTOPs of instances", self.stops, Some(tier.stops)),
            ("SIGKILLs of brokers", self.broker_kills, Some(tier.broker_kills)),
            ("requests and connections broken", self.network, Some(tier.network)),
            ("rebalances", self.rebalances, Some(tier.rebalances)),
            ("records in", self.records, Some(tier.records as usize)),
            ("transactions", self.transactions, None),
        ]
    }

    /// Deaths at a crash point.
    pub fn deaths(&self, point: &str) -> usize {
        self.crashes.get(point).copied().unwrap_or(0)
    }

    /// The kills that left a transaction open, in hundredths of all.
    pub fn open_share(&self) -> f64 {
        self.open as f64 * 100.0 / self.kills.max(1) as f64
    }

    /// What is missing for the tier, each as a line; nothing: it counts. `points`: all crash points there are.
    pub fn lacks(&self, tier: &Tier, points: &[&str]) -> Vec<String> {
        let few = |(name, has, wanted): Row| {
            let wanted = wanted.filter(|wanted| has < *wanted)?;
            Some(format!("{name}: {has} of {wanted}"))
        };
        let mut lacks: Vec<String> = self.rows(tier).into_iter().filter_map(few).collect();
        if self.open * 100 < self.kills * OPEN_SHARE {
            lacks.push(format!(
                "{} of {} kills left a transaction open: {:.1} %, and {OPEN_SHARE} % are needed",
                self.open,
                self.kills,
                self.open_share(),
            ));
        }
        let wanted = deaths_wanted(tier);
        if wanted > 0 && points.is_empty() {
            lacks.push("crash points: the program was built without them".to_owned());
        }
        let few = points.iter().filter(|point| self.deaths(point) < wanted);
        lacks.extend(few.map(|point| format!("deaths at {point}: {} of {wanted}", self.deaths(point))));
        lacks
    }
}

/// How many must have died at each crash point.
pub fn deaths_wanted(tier: &Tier) -> usize {
    tier.crashes.min(ENOUGH)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::tier::Name;

    type Change = fn(&mut Numbers);

    const POINTS: [&str; 2] = ["after-begin", "before-fence"];

    /// Exactly what a tier wants.
    pub(crate) fn enough(tier: &Tier) -> Numbers {
        Numbers {
            kills: tier.kills,
            open: tier.kills * 3 / 10,
            disks: tier.disks,
            stops: tier.stops,
            broker_kills: tier.broker_kills,
            network: tier.network,
            rebalances: tier.rebalances,
            records: tier.records as usize,
            transactions: 9,
            crashes: POINTS.map(|point| (point.to_owned(), 5)).into(),
        }
    }

    #[test]
    fn a_run_with_the_numbers_of_its_tier_counts() {
        for name in [Name::Dev, Name::Real, Name::Nightly, Name::Release] {
            let tier = name.tier();
            assert_eq!(enough(&tier).lacks(&tier, &POINTS), Vec::<String>::new(), "{name:?}");
        }
    }

    #[test]
    fn each_number_that_is_too_small_is_told() {
        let tier = Name::Nightly.tier();
        let less: [(Change, &str); 8] = [
            (|one| (one.kills, one.open) = (999, 900), "SIGKILLs of instances: 999 of 1000"),
            (|one| one.disks -= 1, "of these, with another state on disk afterwards: 99 of 100"),
            (|one| one.stops -= 1, "SIGSTOPs of instances: 199 of 200"),
            (|one| one.broker_kills -= 1, "SIGKILLs of brokers: 99 of 100"),
            (|one| one.network -= 1, "requests and connections broken: 999 of 1000"),
            (|one| one.rebalances -= 1, "rebalances: 99 of 100"),
            (|one| one.records -= 1, "records in: 9999999 of 10000000"),
            (|one| one.open -= 1, "299 of 1000 kills left a transaction open: 29.9 %, and 30 % are needed"),
        ];
        for (make_less, told) in less {
            let mut numbers = enough(&tier);
            make_less(&mut numbers);
            assert_eq!(numbers.lacks(&tier, &POINTS), [told]);
        }
    }

    #[test]
    fn each_crash_point_must_be_met_five_times() {
        let tier = Name::Nightly.tier();
        let mut numbers = enough(&tier);
        numbers.crashes.insert("before-fence".to_owned(), 4);
        assert_eq!(numbers.lacks(&tier, &POINTS), ["deaths at before-fence: 4 of 5"]);
        numbers.crashes.remove("before-fence");
        assert_eq!(numbers.lacks(&tier, &POINTS), ["deaths at before-fence: 0 of 5"]);
        assert_eq!(enough(&tier).lacks(&tier, &[]), ["crash points: the program was built without them"]);
        let three = Tier { crashes: 3, ..tier };
        numbers.crashes.insert("before-fence".to_owned(), 3);
        assert_eq!(numbers.lacks(&three, &POINTS), Vec::<String>::new(), "a part of a night asks for less");
    }

    #[test]
    fn several_add_up() {
        let tier = Name::Nightly.tier();
        let half = Numbers {
            kills: 500,
            open: 150,
            disks: 50,
            stops: 100,
            broker_kills: 50,
            network: 500,
            rebalances: 50,
            records: 5_000_000,
            transactions: 4,
            crashes: BTreeMap::from([("after-begin".to_owned(), 5), ("before-fence".to_owned(), 2)]),
        };
        let mut sum = half.clone();
        sum.add(&Numbers {
            crashes: BTreeMap::from([("before-fence".to_owned(), 3), ("after-begin".to_owned(), 0)]),
            ..half.clone()
        });
        assert_eq!(sum.lacks(&tier, &POINTS), Vec::<String>::new());
        assert_eq!((sum.transactions, sum.deaths("before-fence")), (8, 5));
        sum.add(&Numbers { kills: 100, ..Numbers::default() });
        assert_eq!(sum.lacks(&tier, &POINTS).len(), 1, "the share is that of all kills together");
    }
}
