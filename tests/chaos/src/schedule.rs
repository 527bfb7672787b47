//! What is done to whom and when: a pure function of the seed and the tier. The run that follows it may go otherwise each time;
//! the schedule does not.
//!
//! Each class of faults draws from a stream of its own, so that another number of one class leaves the others as they are.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;

use crate::tier::Tier;

/// Sessions of the instances end after this.
pub const SESSION: Duration = Duration::from_secs(3);
/// Transactions of the instances end after this.
pub const TRANSACTION: Duration = Duration::from_secs(8);

/// The stream from which deaths at crash points are drawn.
const CRASHES: u64 = 6;

/// A fault and its time from the start of the faults on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Planned {
    /// When.
    pub at: Duration,
    /// What.
    #[serde(flatten)]
    pub fault: Fault,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// K: SIGKILL of an instance, which comes back. S: with another state on its disk.
    Kill {
        /// Which instance.
        slot: usize,
        /// At which moment.
        moment: Moment,
        /// What happens to its disk before it comes back.
        disk: Option<Disk>,
        /// How long it is away.
        away: Duration,
    },
    /// K: an instance is started such that it kills itself at a crash point.
    Crash {
        /// Which instance.
        slot: usize,
        /// The number of the point.
        point: usize,
        /// At the how manieth pass.
        nth: u32,
    },
    /// Z, T: SIGSTOP of an instance, and SIGCONT.
    Stop {
        /// Which instance.
        slot: usize,
        /// For how long.
        length: Duration,
    },
    /// B: SIGKILL of a broker, which comes back.
    Broker {
        /// Which.
        node: Node,
        /// How long it is away.
        away: Duration,
    },
    /// R: who takes part changes in an orderly way.
    Rebalance {
        /// How.
        change: Change,
        /// How long it stays so.
        length: Duration,
    },
    /// N: a request is broken on its way.
    Network {
        /// Which request.
        api: Request,
        /// How.
        harm: Harm,
        /// The how manieth from now on.
        nth: u32,
    },
}

/// The moment of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// It has running tasks.
    Working,
    /// It may be starting, joining or restoring.
    Any,
}

/// What becomes of the state on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disk {
    /// It is gone.
    Deleted,
    /// One file lacks its second half.
    Truncated,
    /// One bit of one file is another.
    Flipped,
    /// It is what it was some kills ago.
    Old,
}

/// Which broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    /// By its number, from 0 on.
    Number(u32),
    /// The coordinator of the group of the last stage.
    GroupCoordinator,
    /// The coordinator of the transactions of a task of the last stage, by its partition.
    TransactionCoordinator(i32),
    /// One after the other, each once the last one is back.
    Rolling,
}

/// How the instances change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// One more.
    Join,
    /// One leaves, in an orderly way.
    Leave(usize),
    /// All but one leave.
    DownTo(usize),
    /// All leave and come back at once.
    All,
    /// More instances than partitions.
    Crowd,
}

/// A request of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Records are written.
    Produce,
    /// Records are read.
    Fetch,
    /// A member is alive.
    Heartbeat,
    /// Positions are read.
    OffsetFetch,
    /// A producer is fenced.
    InitProducerId,
    /// Positions are written in a transaction.
    TxnOffsetCommit,
    /// A transaction ends.
    EndTxn,
}

/// What happens to it: before the broker has seen it, or after the broker has acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Harm {
    /// It comes late.
    Delay(Duration),
    /// Its answer comes late.
    DelayReply(Duration),
    /// It is held back for long, even if its client has gone meanwhile.
    Hold(Duration),
    /// Its answer is held back for long.
    HoldReply(Duration),
    /// It is lost, with all that comes behind it, and the connection stands.
    Lose,
    /// Its answer is lost, with all that comes behind it, and the connection stands.
    LoseReply,
    /// The connection ends before the broker has seen it.
    Cut,
    /// The connection ends after the broker has acted.
    CutReply,
    /// All connections of the client end before the broker has seen it.
    CutClient,
    /// All connections of the client end after the broker has acted.
    CutClientAfter,
}

/// All requests that are broken.
pub const REQUESTS: [Request; 7] = [
    Request::EndTxn,
    Request::TxnOffsetCommit,
    Request::Produce,
    Request::InitProducerId,
    Request::Heartbeat,
    Request::OffsetFetch,
    Request::Fetch,
];

/// The schedule, in the order of time. `points`: the number of crash points there are.
pub fn schedule(seed: u64, tier: &Tier, points: usize) -> Vec<Planned> {
    let mut planned = Vec::new();
    let mut add = |class: u64, count: usize, draw: &mut dyn FnMut(&mut StdRng, usize) -> Fault| {
        // Who does not come to its crash point is sent there again, while there is input.
        let span = if class == CRASHES { tier.span.mul_f64(0.9) } else { tier.span };
        let mut random = StdRng::seed_from_u64(seed ^ class.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for index in 0..count {
            let at = Duration::from_millis(random.random_range(0..=span.as_millis() as u64));
            planned.push(Planned { at, fault: draw(&mut random, index) });
        }
    };
    // The first ones are let alone.
    let (steady, instances) = (tier.steady, tier.instances);
    let millis =
        |random: &mut StdRng, low: u64, high: u64| Duration::from_millis(random.random_range(low..=high));

    // The disk is that of an instance which keeps it: the last one is a stranger each time.
    let lasting = instances.saturating_sub(1).max(steady + 1);
    let disks = tier.disks.min(tier.kills);
    add(1, tier.kills, &mut |random, index| {
        let kinds = [Disk::Deleted, Disk::Truncated, Disk::Flipped, Disk::Old];
        let disk = (index < disks).then(|| kinds[index % kinds.len()]);
        // The group waits a session long for a stranger that was killed: it is the victim more seldom.
        let among = if disk.is_some() || random.random_bool(0.7) { lasting } else { instances };
        Fault::Kill {
            slot: random.random_range(steady..among),
            moment: if random.random_bool(0.85) { Moment::Working } else { Moment::Any },
            disk,
            away: if random.random_bool(0.8) { Duration::ZERO } else { millis(random, 100, 4000) },
        }
    });
    add(2, tier.stops, &mut |random, index| Fault::Stop {
        slot: random.random_range(0..instances),
        length: match index % 2 {
            0 => SESSION + millis(random, 500, 1500),
            _ => TRANSACTION + millis(random, 500, 2000),
        },
    });
    add(3, if tier.nodes > 1 { tier.broker_kills } else { 0 }, &mut |random, index| Fault::Broker {
        node: match index % 4 {
            1 => Node::GroupCoordinator,
            2 => Node::TransactionCoordinator(random.random_range(0..tier.partitions)),
            _ if index % 16 == 15 => Node::Rolling,
            _ => Node::Number(random.random_range(0..tier.nodes)),
        },
        away: millis(random, 0, 8000),
    });
    add(4, tier.rebalances, &mut |random, index| Fault::Rebalance {
        change: match index % 10 {
            1 | 5 | 8 => Change::Leave(random.random_range(steady..instances)),
            3 => Change::DownTo(random.random_range(steady..instances)),
            6 => Change::All,
            // Many processes: seldom.
            9 if index % 30 == 29 => Change::Crowd,
            _ => Change::Join,
        },
        length: millis(random, 500, 6000),
    });
    add(5, tier.network, &mut |random, index| Fault::Network {
        api: REQUESTS[index % REQUESTS.len()],
        harm: match random.random_range(0..20) {
            0..=2 => Harm::Delay(millis(random, 50, 2000)),
            3 | 4 => Harm::DelayReply(millis(random, 50, 2000)),
            5 => Harm::Hold(millis(random, 2000, 12_000)),
            6 => Harm::HoldReply(millis(random, 2000, 12_000)),
            7 => Harm::Lose,
            8 => Harm::LoseReply,
            9..=11 => Harm::Cut,
            12..=16 => Harm::CutReply,
            17 => Harm::CutClient,
            _ => Harm::CutClientAfter,
        },
        nth: random.random_range(1..=5),
    });
    add(CRASHES, tier.crashes * points, &mut |random, index| Fault::Crash {
        slot: random.random_range(steady..instances),
        point: index % points,
        nth: random.random_range(1..=3),
    });
    planned.sort_by_key(|one| one.at);
    planned
}

impl Fault {
    /// The letter of its class.
    pub fn class(&self) -> char {
        match self {
            Fault::Kill { disk: Some(_), .. } => 'S',
            Fault::Kill { .. } | Fault::Crash { .. } => 'K',
            Fault::Stop { .. } => 'Z',
            Fault::Broker { .. } => 'B',
            Fault::Rebalance { .. } => 'R',
            Fault::Network { .. } => 'N',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::Name;

    fn count(planned: &[Planned], which: impl Fn(&Fault) -> bool) -> usize {
        planned.iter().filter(|one| which(&one.fault)).count()
    }

    #[test]
    fn one_seed_is_one_schedule() {
        let tier = Name::Nightly.tier();
        assert_eq!(schedule(7, &tier, 20), schedule(7, &tier, 20));
        assert_ne!(schedule(7, &tier, 20), schedule(8, &tier, 20));
    }

    #[test]
    fn the_numbers_of_the_tier_are_met_in_order() {
        let tier = Name::Nightly.tier();
        let planned = schedule(1, &tier, 20);
        assert!(planned.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert!(planned.iter().all(|one| one.at <= tier.span));
        assert_eq!(count(&planned, |one| matches!(one, Fault::Kill { .. })), 1000);
        assert_eq!(count(&planned, |one| matches!(one, Fault::Kill { disk: Some(_), .. })), 100);
        assert_eq!(count(&planned, |one| matches!(one, Fault::Stop { .. })), 200);
        assert_eq!(count(&planned, |one| matches!(one, Fault::Broker { .. })), 100);
        assert_eq!(count(&planned, |one| matches!(one, Fault::Rebalance { .. })), 100);
        assert_eq!(count(&planned, |one| matches!(one, Fault::Network { .. })), 1000);
        for point in 0..20 {
            assert!(
                count(&planned, |one| matches!(one, Fault::Crash { point: it, .. } if *it == point)) >= 5
            );
        }
    }

    #[test]
    fn each_kind_of_fault_is_in_a_nightly_run() {
        let planned = schedule(1, &Name::Nightly.tier(), 20);
        for class in ['K', 'S', 'Z', 'B', 'R', 'N'] {
            assert!(count(&planned, |one| one.class() == class) > 0, "{class}");
        }
        for disk in [Disk::Deleted, Disk::Truncated, Disk::Flipped, Disk::Old] {
            assert!(
                count(&planned, |one| matches!(one, Fault::Kill { disk: Some(it), .. } if *it == disk)) > 0
            );
        }
        let changes = |which: fn(&Change) -> bool| {
            count(&planned, |one| matches!(one, Fault::Rebalance { change, .. } if which(change)))
        };
        assert!(changes(|one| *one == Change::Join) > 0 && changes(|one| *one == Change::All) > 0);
        assert!(
            changes(|one| *one == Change::Crowd) > 0 && changes(|one| matches!(one, Change::DownTo(_))) > 0
        );
        let nodes = |which: fn(&Node) -> bool| {
            count(&planned, |one| matches!(one, Fault::Broker { node, .. } if which(node)))
        };
        assert!(nodes(|one| *one == Node::GroupCoordinator) > 0 && nodes(|one| *one == Node::Rolling) > 0);
        assert!(nodes(|one| matches!(one, Node::TransactionCoordinator(_))) > 0);
        for request in REQUESTS {
            assert!(count(&planned, |one| matches!(one, Fault::Network { api, .. } if *api == request)) > 0);
        }
    }

    #[test]
    fn a_steady_instance_is_never_ended() {
        let tier = Tier { steady: 2, kills: 500, rebalances: 100, crashes: 3, ..Name::Long.tier() };
        let planned = schedule(1, &tier, 20);
        assert_eq!(
            count(&planned, |one| match one {
                Fault::Kill { slot, .. } | Fault::Crash { slot, .. } => *slot < 2,
                Fault::Rebalance { change: Change::Leave(slot), .. } => *slot < 2,
                _ => false,
            }),
            0
        );
        assert!(count(&planned, |one| matches!(one, Fault::Stop { slot: 0, .. })) > 0);
    }

    #[test]
    fn another_number_of_one_class_leaves_the_others_as_they_are() {
        let tier = Name::Nightly.tier();
        let more = Tier { stops: 300, ..tier.clone() };
        let kills = |tier: &Tier| -> Vec<Planned> {
            let all = schedule(3, tier, 20);
            all.into_iter().filter(|one| matches!(one.fault, Fault::Kill { .. })).collect()
        };
        assert_eq!(kills(&tier), kills(&more));
    }

    #[test]
    fn without_brokers_of_its_own_none_is_killed() {
        let tier = Tier { nodes: 0, broker_kills: 9, ..Name::Dev.tier() };
        assert_eq!(count(&schedule(1, &tier, 0), |one| one.class() == 'B'), 0);
    }
}
