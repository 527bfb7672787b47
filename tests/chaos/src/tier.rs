//! How much is done to the pipeline, as data: the tiers, and what each number may be set to instead.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// The tiers by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Name {
    /// What `make test` does on the development broker.
    Dev,
    /// What `make test` does on a real Kafka.
    Real,
    /// `make chaos`.
    Nightly,
    /// `make chaos-release`.
    Release,
    /// An hour in which one instance is never ended, to see whether its memory, threads and files stay.
    Long,
}

/// The numbers of a run. A schedule is a function of these and the seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tier {
    /// Brokers that the rig starts and kills; 0 for one that somebody else keeps.
    pub nodes: u32,
    /// Of every topic.
    pub partitions: i32,
    /// Instances that are there all the time, or come back.
    pub instances: usize,
    /// The first of them, which nobody ends: whether they grow can be seen.
    #[serde(default)]
    pub steady: usize,
    /// Records that come in.
    pub records: u64,
    /// Different keys.
    pub keys: u32,
    /// SIGKILLs of instances.
    pub kills: usize,
    /// SIGSTOPs past the session's time-out, half of them past the transaction's as well.
    pub stops: usize,
    /// SIGKILLs of brokers.
    pub broker_kills: usize,
    /// Instances that come, go, or all of them do.
    pub rebalances: usize,
    /// Requests and connections that the proxy breaks.
    pub network: usize,
    /// How often each crash point is armed.
    pub crashes: usize,
    /// Kills after which the state on the disk is not what it was; part of `kills`.
    pub disks: usize,
    /// The time that faults are spread over.
    pub span: Duration,
}

/// Numbers to replace those of a tier.
#[derive(Args, Clone, Debug, Default)]
pub struct Overrides {
    /// SIGKILLs of instances
    #[arg(long, value_parser = count)]
    pub kills: Option<usize>,
    /// SIGSTOPs of instances
    #[arg(long, value_parser = count)]
    pub stops: Option<usize>,
    /// SIGKILLs of brokers
    #[arg(long, value_parser = count)]
    pub broker_kills: Option<usize>,
    /// Instances that come or go
    #[arg(long, value_parser = count)]
    pub rebalances: Option<usize>,
    /// Requests and connections that are broken
    #[arg(long, value_parser = count)]
    pub network: Option<usize>,
    /// How often one dies at each crash point
    #[arg(long, value_parser = count)]
    pub crashes: Option<usize>,
    /// Kills after which the state on disk is spoilt
    #[arg(long, value_parser = count)]
    pub disks: Option<usize>,
    /// Input records
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    pub records: Option<u64>,
    /// Different keys
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub keys: Option<u32>,
    /// Partitions of each topic
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=1000))]
    pub partitions: Option<i32>,
    /// Instances
    #[arg(long, value_parser = some)]
    pub instances: Option<usize>,
    /// Instances among them that nobody ends
    #[arg(long, value_parser = count)]
    pub steady: Option<usize>,
    /// Brokers
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=9))]
    pub nodes: Option<u32>,
    /// Minutes over which the faults are spread
    #[arg(long, value_parser = minutes)]
    pub minutes: Option<f64>,
}

/// More can't be planned in memory, or done in a life.
const MOST: usize = 1_000_000;
/// More processes than one machine has room for.
const MOST_INSTANCES: usize = 100;
/// A month.
const LONGEST: f64 = 30.0 * 24.0 * 60.0;

fn within(text: &str, least: usize, most: usize) -> Result<usize, String> {
    let number = text.parse().map_err(|_| format!("not a number from {least} to {most}"))?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(format!("not from {least} to {most}")) }
}

fn count(text: &str) -> Result<usize, String> {
    within(text, 0, MOST)
}

fn some(text: &str) -> Result<usize, String> {
    within(text, 1, MOST_INSTANCES)
}

fn minutes(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of minutes".to_owned())?;
    if number > 0.0 && number <= LONGEST {
        Ok(number)
    } else {
        Err(format!("not more than 0 and at most {LONGEST}"))
    }
}

/// How long a run is that shows whether something grows.
const HOUR: Duration = Duration::from_secs(3600);

impl Name {
    /// Its numbers.
    pub fn tier(self) -> Tier {
        let small = Tier {
            nodes: 0,
            partitions: 8,
            instances: 3,
            steady: 0,
            records: 200_000,
            keys: 1000,
            kills: 100,
            stops: 3,
            broker_kills: 0,
            rebalances: 4,
            network: 30,
            crashes: 0,
            disks: 10,
            span: Duration::ZERO,
        };
        let nightly = Tier {
            nodes: 3,
            records: 10_000_000,
            keys: 10_000,
            kills: 1000,
            stops: 200,
            broker_kills: 100,
            rebalances: 100,
            network: 1000,
            crashes: 6,
            disks: 100,
            ..small.clone()
        };
        let tier = match self {
            Name::Dev => small,
            Name::Real => Tier { kills: 30, stops: 5, rebalances: 3, network: 20, disks: 5, ..small },
            Name::Nightly => nightly,
            Name::Release => Tier {
                partitions: 24,
                records: 100_000_000,
                keys: 50_000,
                kills: 10_000,
                disks: 1000,
                ..nightly
            },
            Name::Long => Tier {
                nodes: 3,
                steady: 1,
                records: 2_000_000,
                keys: 10_000,
                kills: 200,
                stops: 40,
                broker_kills: 20,
                rebalances: 60,
                network: 200,
                disks: 20,
                ..small
            },
        };
        let span = match self {
            Name::Long => HOUR,
            _ => tier.needed(),
        };
        Tier { span, ..tier }
    }
}

impl Tier {
    /// The tier with other numbers.
    pub fn with(self, other: &Overrides) -> Tier {
        let tier = Tier {
            nodes: other.nodes.unwrap_or(self.nodes),
            partitions: other.partitions.unwrap_or(self.partitions),
            instances: other.instances.unwrap_or(self.instances),
            steady: other.steady.unwrap_or(self.steady),
            records: other.records.unwrap_or(self.records),
            keys: other.keys.unwrap_or(self.keys),
            kills: other.kills.unwrap_or(self.kills),
            stops: other.stops.unwrap_or(self.stops),
            broker_kills: other.broker_kills.unwrap_or(self.broker_kills),
            rebalances: other.rebalances.unwrap_or(self.rebalances),
            network: other.network.unwrap_or(self.network),
            crashes: other.crashes.unwrap_or(self.crashes),
            disks: other.disks.unwrap_or(self.disks),
            span: self.span,
        };
        let needed = match tier.steady {
            0 => tier.needed(),
            _ => tier.needed().max(HOUR),
        };
        let span = other.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
        Tier { span: span.unwrap_or(needed), ..tier }
    }

    /// What does not go together.
    pub fn wrong(&self) -> Option<String> {
        (self.steady >= self.instances).then(|| {
            format!("--steady {} leaves none of {} instances to be killed", self.steady, self.instances)
        })
    }

    /// True if less is done than in a run of the tier.
    pub fn is_less_than(&self, tier: &Tier) -> bool {
        self.kills < tier.kills
            || self.stops < tier.stops
            || self.broker_kills < tier.broker_kills
            || self.rebalances < tier.rebalances
            || self.network < tier.network
            || self.crashes < tier.crashes
            || self.disks < tier.disks
            || self.records < tier.records
    }

    /// The time that the faults of the busiest class need: as measured, with what lies between them.
    fn needed(&self) -> Duration {
        let seconds = [
            (self.kills, 1.0),
            (self.stops, 4.0),
            (self.broker_kills, 25.0),
            (self.rebalances, 6.0),
            (self.network, 1.5),
            (self.crashes * 20, 3.0),
        ];
        let longest = seconds.map(|(count, each)| count as f64 * each).into_iter().fold(20.0, f64::max);
        Duration::from_secs_f64(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiers_have_the_numbers_that_are_promised() {
        let nightly = Name::Nightly.tier();
        assert_eq!((nightly.nodes, nightly.records), (3, 10_000_000));
        assert_eq!((nightly.kills, nightly.stops, nightly.broker_kills), (1000, 200, 100));
        assert_eq!((nightly.network, nightly.rebalances), (1000, 100));
        assert!(nightly.crashes >= 5);
        let release = Name::Release.tier();
        assert_eq!((release.kills, release.records), (10_000, 100_000_000));
        let (dev, real) = (Name::Dev.tier(), Name::Real.tier());
        assert_eq!((dev.kills, dev.instances, dev.partitions, dev.records), (100, 3, 8, 200_000));
        assert_eq!((real.kills, real.stops), (30, 5));
        let long = Name::Long.tier();
        assert_eq!((long.steady, long.span), (1, Duration::from_secs(3600)));
        assert!([dev, real, nightly, release, long].iter().all(|tier| tier.wrong().is_none()));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(minutes("-1").is_err() && minutes("0").is_err() && minutes("NaN").is_err());
        assert!(minutes("inf").is_err() && minutes("1e300").is_err() && minutes("x").is_err());
        assert_eq!(minutes("0.5"), Ok(0.5));
        assert!(some("0").is_err() && count("-1").is_err() && count("1000001").is_err());
        assert_eq!((some("1"), count("0")), (Ok(1), Ok(0)));
        let all = Tier { steady: 3, ..Name::Long.tier() };
        assert!(all.wrong().is_some());
    }

    #[test]
    fn single_numbers_can_be_others() {
        let other = Overrides { kills: Some(5), minutes: Some(0.5), ..Overrides::default() };
        let tier = Name::Nightly.tier().with(&other);
        assert_eq!((tier.kills, tier.stops, tier.span), (5, 200, Duration::from_secs(30)));
        assert!(tier.is_less_than(&Name::Nightly.tier()) && !tier.is_less_than(&tier));
    }
}
