//! The parts of the report, and the targets.

use std::collections::HashMap;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::contestant::{Contestant, Kind};
use crate::handover::Departure;
use crate::pages::Work;
use crate::perf::KafkaScript;
use crate::report::{Row, Target, cpu, in_seconds, median, memory, rate, seconds};
use crate::throughput::{Drained, drain};
use crate::{compile, handover, latency, load, pages, startup, timers, tokens, transactions, verify};

const KEYS: u64 = 100_000;
const MILLION: u64 = 1_000_000;
/// After which a member that is not heard of is taken for dead, in both contestants.
const SESSION_TIMEOUT: f64 = 10.0;

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Records a second and CPU per record, draining a backlog
    Throughput,
    /// Time to the output at a light load
    Latency,
    /// Time to the first output, and memory
    Start,
    /// Reading state back
    Restore,
    /// 64 tasks against 8
    Tasks,
    /// When an instance goes
    Handover,
    /// Own CPU time of a transaction
    Transaction,
    /// Pages of an extractor
    Pages,
    /// Timers that fire, and many that wait
    Timers,
    /// What the macros add to `cargo check`
    Compile,
}

/// Everything that a part needs.
pub struct Suite {
    /// The cluster measured on.
    pub cluster: Cluster,
    /// How to reach Kafka's own tools.
    pub kafka: KafkaScript,
    /// Runs of what is compared by throughput; the median counts.
    pub repeats: usize,
    /// Records of the backlog.
    pub records: u64,
    /// Puts the loop in the place of the stages, to try the harness.
    pub loop_only: bool,
}

impl Suite {
    /// Measures one part.
    pub fn measure(&self, part: Part) -> anyhow::Result<Vec<Row>> {
        match part {
            Part::Throughput => self.throughput(),
            Part::Latency => self.latency(),
            Part::Start => self.start(),
            Part::Restore => self.restore(),
            Part::Tasks => self.tasks(),
            Part::Handover => self.handover(),
            Part::Transaction => self.transaction(),
            Part::Pages => self.pages(),
            Part::Timers => self.timers(),
            Part::Compile => compile(),
        }
    }

    fn stage(&self, kind: Kind) -> Contestant {
        Contestant::new(if self.loop_only { Kind::Loop } else { kind })
    }

    /// The backlog, made once for each number of partitions.
    fn backlog(&self, partitions: i32) -> anyhow::Result<String> {
        let topic = format!("backlog-{}-{partitions}", self.records);
        if self.cluster.partitions(&topic)? == 0 {
            self.cluster.create_topic(&topic, partitions, false)?;
            load::words(&self.cluster, &topic, self.records, KEYS)?;
        }
        Ok(topic)
    }

    fn throughput(&self) -> anyhow::Result<Vec<Row>> {
        let input = self.backlog(8)?;
        if self.cluster.partitions("performance")? == 0 {
            self.cluster.create_topic("performance", 8, false)?;
        }
        let expected = verify::recount(&self.cluster, &input)?;
        let contestants =
            [Contestant::new(Kind::Loop), self.stage(Kind::StageMemory), self.stage(Kind::StageRocksDb)];
        let run = |contestant: &Contestant, expected: Option<&HashMap<Vec<u8>, Vec<i64>>>| {
            drain(&self.cluster, contestant, &input, self.records, expected)
        };
        // Warms the broker up, and shows that each does the work it is measured at.
        for contestant in &contestants {
            run(contestant, Some(&expected))?;
        }
        let mut performance = Vec::new();
        let mut drained: [Vec<Drained>; 3] = Default::default();
        for _ in 0..self.repeats {
            performance.push(self.kafka.producer_performance("performance", self.records)?);
            for (contestant, drained) in contestants.iter().zip(&mut drained) {
                drained.push(run(contestant, None)?);
            }
        }
        let speeds = drained.each_ref().map(|runs| median(runs.iter().map(|run| run.records_per_second)));
        let costs = drained.each_ref().map(|runs| median(runs.iter().map(|run| run.cpu_per_million)));
        Ok(vec![
            Row::ratio(
                "the loop beside Kafka's ProducerPerformance",
                rate,
                speeds[0],
                median(performance),
                Target::None,
            ),
            Row::ratio(
                "throughput, state in memory, beside the loop",
                rate,
                speeds[1],
                speeds[0],
                Target::AtLeast(0.8),
            ),
            Row::ratio(
                "throughput, state in RocksDB, beside the loop",
                rate,
                speeds[2],
                speeds[0],
                Target::AtLeast(0.4),
            ),
            Row::ratio(
                "CPU per million records, in memory, beside the loop",
                cpu,
                costs[1],
                costs[0],
                Target::AtMost(1.5),
            ),
            Row::ratio(
                "CPU per million records, in RocksDB, beside the loop",
                cpu,
                costs[2],
                costs[0],
                Target::None,
            ),
        ])
    }

    fn latency(&self) -> anyhow::Result<Vec<Row>> {
        let second = Duration::from_secs(1);
        let at = |kind, rate, warm_up, time| {
            latency::measure(&self.cluster, &self.stage(kind), rate, warm_up * second, time * second)
        };
        let by_hand = at(Kind::Loop, 1000, 5, 20)?;
        let stage = at(Kind::StageMemory, 1000, 5, 20)?;
        let slow_by_hand = at(Kind::Loop, 1, 3, 15)?;
        let slow = at(Kind::StageMemory, 1, 3, 15)?;
        let row = |measure: &str, stage, by_hand, target| {
            Row::ratio(measure, seconds, in_seconds(stage), in_seconds(by_hand), target)
        };
        Ok(vec![
            row("latency p50 at 1,000 records/s, beside the loop", stage.p50, by_hand.p50, Target::None),
            row(
                "latency p99 at 1,000 records/s, beside the loop",
                stage.p99,
                by_hand.p99,
                Target::AtMost(1.2),
            ),
            Row::figure("latency p50 at 1 record/s", seconds, in_seconds(slow.p50), Target::AtMost(0.015)),
            row("latency p50 at 1 record/s, beside the loop", slow.p50, slow_by_hand.p50, Target::None),
        ])
    }

    fn start(&self) -> anyhow::Result<Vec<Row>> {
        let by_hand = startup::idle(&self.cluster, &Contestant::new(Kind::Loop))?;
        let stage = startup::idle(&self.cluster, &self.stage(Kind::StageMemory))?;
        let mib = f64::from(1 << 20);
        Ok(vec![
            Row::figure(
                "time to the first output, no state",
                seconds,
                in_seconds(stage.first_output),
                Target::AtMost(2.0),
            ),
            Row::ratio(
                "time to the first output, beside the loop",
                seconds,
                in_seconds(stage.first_output),
                in_seconds(by_hand.first_output),
                Target::None,
            ),
            Row::figure(
                "memory of an idle instance with 8 tasks",
                memory,
                stage.memory as f64,
                Target::AtMost(100.0 * mib),
            ),
            Row::ratio(
                "memory, beside the loop",
                memory,
                stage.memory as f64,
                by_hand.memory as f64,
                Target::None,
            ),
        ])
    }

    fn restore(&self) -> anyhow::Result<Vec<Row>> {
        let by_hand = startup::restore(&self.cluster, &Contestant::new(Kind::Loop), MILLION)?;
        let stage = startup::restore(&self.cluster, &self.stage(Kind::StageMemory), MILLION)?;
        let rocksdb = startup::restore(&self.cluster, &self.stage(Kind::StageRocksDb), MILLION)?;
        let row = |measure: &str, restored: startup::Restored, target| {
            Row::ratio(measure, rate, restored.records_per_second, restored.bare_records_per_second, target)
        };
        Ok(vec![
            row("restore of a million keys into memory, beside a bare consumer", stage, Target::AtLeast(0.6)),
            row("restore into RocksDB, beside a bare consumer", rocksdb, Target::None),
            row("restore by the loop, beside a bare consumer", by_hand, Target::None),
        ])
    }

    fn tasks(&self) -> anyhow::Result<Vec<Row>> {
        let (few, many) = (self.backlog(8)?, self.backlog(64)?);
        // What the records cost, without the start of the process and its clients.
        let cost = |contestant: &Contestant, input: &str| -> anyhow::Result<f64> {
            let partitions = self.cluster.partitions(input)? as i32;
            let runs: Vec<f64> = (0..self.repeats)
                .map(|_| {
                    let start = startup::cpu(&self.cluster, contestant, partitions)?;
                    let whole = drain(&self.cluster, contestant, input, self.records, None)?.cpu_per_million;
                    Ok(whole - in_seconds(start) * MILLION as f64 / self.records as f64)
                })
                .collect::<anyhow::Result<_>>()?;
            Ok(median(runs))
        };
        let slow = |mut contestant: Contestant| {
            contestant.commit_interval = 400;
            contestant
        };
        let (stage, by_hand) = (self.stage(Kind::StageMemory), Contestant::new(Kind::Loop));
        let (stage_few, stage_many) = (cost(&stage, &few)?, cost(&slow(stage), &many)?);
        let (loop_few, loop_many) = (cost(&by_hand, &few)?, cost(&slow(by_hand), &many)?);
        Ok(vec![
            Row::ratio(
                "CPU per million records: 64 tasks at 400 ms, beside 8 at 50 ms",
                cpu,
                stage_many,
                stage_few,
                Target::AtMost(1.5),
            ),
            Row::ratio("the same of the loop", cpu, loop_many, loop_few, Target::None),
        ])
    }

    fn handover(&self) -> anyhow::Result<Vec<Row>> {
        let stage = self.stage(Kind::StageMemory);
        let mut rows = Vec::new();
        for (departure, measure, target) in [
            (Departure::Killed, "handover after SIGKILL", SESSION_TIMEOUT + 2.0),
            (Departure::Stopped, "handover after SIGTERM", 2.0),
            (Departure::Restarted, "restart under the same instance id", 2.0),
        ] {
            if self.loop_only && departure == Departure::Restarted {
                continue;
            }
            let time = in_seconds(handover::measure(&self.cluster, &stage, departure)?);
            rows.push(Row::figure(measure, seconds, time, Target::AtMost(target)));
        }
        if !self.loop_only {
            let time = in_seconds(tokens::measure(&self.cluster)?);
            let measure = "the configs of an extractor after SIGKILL";
            rows.push(Row::figure(measure, seconds, time, Target::AtMost(SESSION_TIMEOUT + 2.0)));
        }
        Ok(rows)
    }

    fn pages(&self) -> anyhow::Result<Vec<Row>> {
        let configs = 1000;
        let pages = (self.records / configs / pages::MESSAGES).max(1);
        let work = Work { configs, tokens: 16, pages };
        let mut measured: [Vec<f64>; 2] = Default::default();
        for _ in 0..self.repeats {
            for (by_hand, pages) in [self.loop_only, true].into_iter().zip(&mut measured) {
                pages.push(pages::measure(&self.cluster, by_hand, work)? * pages::MESSAGES as f64);
            }
        }
        let [stage, by_hand] = measured.map(median);
        let measure = "messages of an extractor, 1,000 configs and 16 tokens, beside a loop";
        Ok(vec![Row::ratio(measure, rate, stage, by_hand, Target::AtLeast(0.8))])
    }

    fn timers(&self) -> anyhow::Result<Vec<Row>> {
        let keys = self.records / 10;
        let mut costs: [Vec<f64>; 2] = Default::default();
        for _ in 0..self.repeats {
            let cost = timers::cost(&self.cluster, keys)?;
            let per_million = |time| in_seconds(time) * 1e6 / keys as f64;
            costs[0].push(per_million(cost.timers));
            costs[1].push(per_million(cost.records));
        }
        let [fired, records] = costs.map(median);
        let pending = timers::memory(&self.cluster, self.records)?;
        Ok(vec![
            Row::ratio(
                "CPU of timers that fire, state in RocksDB, beside records that do the same",
                cpu,
                fired,
                records,
                Target::AtMost(2.0),
            ),
            Row::figure(
                "memory of a start with a million timers that wait, state in RocksDB",
                memory,
                pending.started as f64,
                Target::AtMost(200.0 * 1024.0 * 1024.0),
            ),
            Row::ratio(
                "memory right after they were set, beside as many states",
                memory,
                pending.set as f64,
                pending.counted as f64,
                Target::None,
            ),
        ])
    }

    fn transaction(&self) -> anyhow::Result<Vec<Row>> {
        let cost = transactions::measure(
            &self.cluster,
            &Contestant::new(Kind::StageMemory),
            Duration::from_secs(10),
        )?;
        Ok(vec![
            Row::figure(
                "own CPU per transaction, calls into the client included",
                seconds,
                in_seconds(cost.own),
                Target::AtMost(500e-6),
            ),
            Row::figure(
                "CPU of the whole process per transaction",
                seconds,
                in_seconds(cost.whole),
                Target::None,
            ),
        ])
    }
}

fn compile() -> anyhow::Result<Vec<Row>> {
    let checks = compile::measure(100, 5)?;
    let times = (in_seconds(checks.with.time), in_seconds(checks.without.time));
    let cpu_times = (in_seconds(checks.with.cpu), in_seconds(checks.without.cpu));
    Ok(vec![
        Row::figure(
            "the macros of 100 stages add to `cargo check`",
            seconds,
            times.0 - times.1,
            Target::AtMost(1.0),
        ),
        Row::figure("the same in CPU time", seconds, cpu_times.0 - cpu_times.1, Target::None),
        Row::ratio(
            "`cargo check` of 100 stages, beside the same functions",
            seconds,
            times.0,
            times.1,
            Target::None,
        ),
    ])
}
