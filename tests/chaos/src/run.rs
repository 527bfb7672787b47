//! A run from its start to its verdict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use flechtwerk_checkers::ends::{self, Progress};
use flechtwerk_checkers::{Check, Partition, Violation};
use flechtwerk_tests::{Kafka, Rig};
use rdkafka::consumer::{BaseConsumer, Consumer};
use serde_json::json;

use crate::brokers::{Lane, Script};
use crate::driver::{Driver, Tools, crash_points};
use crate::fleet::Fleet;
use crate::growth::{Verdict, growth};
use crate::interrupt;
use crate::journal::{self, Journal};
use crate::judge::Judge;
use crate::names::Names;
use crate::network::Network;
use crate::opened;
use crate::outcome::Outcome;
use crate::peek::Peek;
use crate::progress::Bar;
use crate::raw::Reader;
use crate::report;
use crate::schedule::{SESSION, TRANSACTION, schedule};
use crate::tier::{Name, Tier};
use crate::watch::Watchers;
use crate::workload::{Pace, sing, write};

/// After the last fault nothing may stand still for as long as this.
const STANDSTILL: Duration = Duration::from_secs(60);
/// A cluster that runs answers within this time.
const ANSWER: Duration = Duration::from_secs(20);
/// Clients give up a request that is not answered after this.
const SOCKET: Duration = Duration::from_secs(6);

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The numbers.
    pub tier: Tier,
    /// The schedule and the input follow from it.
    pub seed: u64,
    /// Where everything is kept.
    pub out: PathBuf,
    /// The program under test.
    pub pipeline: PathBuf,
    /// Rules of the runtime to break.
    pub broken: Vec<String>,
}

impl Options {
    /// True if several such runs make a night.
    pub fn is_part(&self) -> bool {
        self.tier.nodes >= Name::Nightly.tier().nodes && self.tier.is_less_than(&Name::Nightly.tier())
    }
}

/// Runs, on the cluster that the environment names. An error is one of the rig, or of the cluster; what the pipeline does wrong is in the
/// outcome.
pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    check_folder(&options.out)?;
    std::fs::create_dir(options.out.join("instances")).context("the folder of the instances' logs")?;
    let journal = Journal::create(&options.out.join(journal::FILE))?;
    let broken = &options.broken;
    journal.write("run", json!({"seed": options.seed, "tier": options.tier, "broken": broken}));
    let mut run = Run::new(options, journal)?;
    let mut outcome = Outcome::default();
    if let Err(error) = run.play(&mut outcome) {
        remove_bulk(options, &run.fleet);
        return Err(error);
    }
    outcome.took = began.elapsed().as_secs_f64();
    outcome.growth = growth(&run.journal.entries());
    // A run that was cut short lacks nearly everything, and that is not what is to be said of it.
    if outcome.violations.is_empty() {
        outcome.lacks = outcome.numbers().lacks(&options.tier, &crash_points());
        let judged = outcome.growth.iter().any(|one| one.verdict != Verdict::Short);
        if options.tier.steady > 0 && !judged {
            outcome
                .lacks
                .push("no instance lived for half an hour, so it can't be said whether they grow".into());
        }
    }
    run.journal.write("outcome", &outcome);
    let page = report::html(options, &outcome, &run.fleet.names(), &run.journal.entries());
    let path = report_path(options);
    std::fs::write(&path, page).with_context(|| format!("write {}", path.display()))?;
    run.journal.written()?;
    if !outcome.violations.is_empty() {
        run.keep_cluster();
    } else {
        remove_bulk(options, &run.fleet);
    }
    Ok(outcome)
}

struct Run<'a> {
    options: &'a Options,
    kafka: Kafka,
    script: Option<Script>,
    names: Names,
    journal: Journal,
    fleet: Fleet,
    network: Option<Network>,
    /// Keeps its folder until the end.
    _rig: Rig,
    /// Instances that are there only for a while.
    extras: Vec<usize>,
}

impl<'a> Run<'a> {
    fn new(options: &'a Options, journal: Journal) -> anyhow::Result<Run<'a>> {
        let kafka = Kafka::from_env();
        let script = Script::from_env();
        let tier = &options.tier;
        if tier.nodes > 1 && script.is_none() {
            bail!("the schedule kills brokers, and none are the rig's own: start it by scripts/chaos");
        }
        let pipeline = options.pipeline.to_string_lossy();
        let network = match tier.network {
            0 => None,
            _ => Some(Network::start(&kafka, journal.clone())?),
        };
        let rig = Rig::new(&kafka, &pipeline);
        let names = Names::new(&kafka, &rig.namespace);
        create_topics(&kafka, &names, tier);
        let base = names.topics().iter().fold(rig.clone(), |rig, (name, topic)| rig.topic(name, topic));
        let base = base
            .arg("--session-timeout", &format!("{}s", SESSION.as_secs()))
            .arg("--transaction-timeout", &format!("{}s", TRANSACTION.as_secs()))
            .arg("--heartbeat-interval", "300ms")
            // One transaction after the other, so that many kills meet an open one.
            .arg("--commit-interval", "5ms")
            .arg("--log-format", "json");
        let base = match &network {
            None => base,
            // Lost requests are noticed in time.
            Some(network) => base
                .arg("--bootstrap-servers", &network.bootstrap())
                .arg("-X", &format!("socket.timeout.ms={}", SOCKET.as_millis())),
        };
        let base = match options.broken.as_slice() {
            [] => base,
            broken => base.env("FLECHTWERK_FLAWS", &broken.join(",")),
        };

        let mut fleet = Fleet::new(journal.clone());
        let mut add = |name: String, lasting: bool, fixed: bool| {
            let mut rig = base.clone().keep_logs(options.out.join("instances").join(&name));
            let mut state = None;
            if fixed {
                rig = rig.arg("--instance-id", &name);
            }
            if lasting && cfg!(feature = "rocksdb") {
                let folder = options.out.join(format!("state-{name}"));
                rig = rig.arg("--store", "rocksdb").arg("--state-dir", &folder.to_string_lossy());
                state = Some(folder);
            }
            fleet.add(name, rig, state)
        };
        // The last one is a stranger to its group each time, and keeps its state in memory. One that is never ended gains nothing
        // from an instance id, and FENCED_INSTANCE_ID would end it.
        for number in 0..tier.instances {
            let lasting = number + 1 < tier.instances || tier.instances == 1;
            add(format!("i{number}"), lasting, lasting && number >= tier.steady);
        }
        let more = (tier.partitions as usize + 1).saturating_sub(tier.instances).max(2);
        let extras = (0..more).map(|number| add(format!("x{number}"), false, false)).collect();
        Ok(Run { options, kafka, script, names, journal, fleet, network, _rig: rig, extras })
    }

    fn play(&mut self, outcome: &mut Outcome) -> anyhow::Result<()> {
        let (tier, seed) = (&self.options.tier, self.options.seed);
        let bar = Bar::new();
        bar.say("starting");
        let mut watchers = Watchers::start(
            &self.kafka,
            &self.names,
            tier.partitions,
            &self.options.out,
            &self.journal,
            self.script.is_some(),
        )?;
        let pace = Arc::new(Pace::default());
        let writer = write(&self.kafka, self.names.events(), seed, tier, pace.clone());
        let singer = sing(&self.kafka, self.names.events(), pace.clone());
        (0..tier.instances).for_each(|slot| {
            self.fleet.begin(slot);
        });
        let until = Instant::now() + Duration::from_secs(120);
        while watchers.outputs.load(std::sync::atomic::Ordering::SeqCst) == 0 {
            self.fleet.tick();
            interrupt::check()?;
            if Instant::now() > until {
                pace.quit();
                bail!(
                    "no output came in two minutes; the instances' logs are in {}",
                    self.options.out.display()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }

        let planned = schedule(seed, tier, crash_points().len());
        let lane =
            self.script.clone().filter(|_| tier.nodes > 1).map(|script| {
                Lane::start(script, &self.kafka, &self.names, tier.nodes, self.journal.clone())
            });
        let network = self.network.take();
        let peek = Peek::new(&self.kafka, &self.names, tier.partitions);
        let tools = Tools { extras: self.extras.clone(), lane, network, peek };
        let mut driver = Driver::new(planned, tier.clone(), seed, tools, self.journal.clone());
        let first = Instant::now();
        driver.run(&mut self.fleet, &watchers, &pace, &bar)?;
        outcome.faults_took = first.elapsed().as_secs_f64();
        outcome.done = driver.done();
        if let Some(failure) = driver.failure() {
            pace.quit();
            bail!("the cluster failed, and not the pipeline: {failure}");
        }
        // The proxy stays until all instances have ended.
        let network = driver.end();
        self.journal.write("faults_over", json!({}));

        pace.over();
        let mut done = false;
        if watchers.found().is_empty() && self.fleet.wrong.is_empty() {
            let over = Instant::now();
            let behind = self.catch_up(writer, &watchers, &pace, &bar)?;
            outcome.caught_up = over.elapsed().as_secs_f64();
            done = behind.is_empty();
            outcome.violations.extend(behind);
        } else {
            pace.quit();
            // A verdict about a run that was cut short: what is there must hold all the same, up to its end.
            let _ = writer.join();
        }
        let _ = singer.join();
        bar.say("stopping the instances");
        self.fleet.end();
        interrupt::check()?;
        drop(network);
        self.journal.write("stopped", json!({}));
        self.journal.written()?;
        self.settle(tier);
        interrupt::check()?;
        // The observer may lag behind a little.
        let mut reader = Reader::new(&self.kafka)?;
        for partition in 0..tier.partitions {
            let last = reader.last(self.names.tallies(), partition)?;
            let until = Instant::now() + STANDSTILL;
            while observed(&watchers, partition) <= last && Instant::now() < until {
                interrupt::check()?;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        watchers.quit();
        outcome.violations.extend(watchers.found().all());
        let wrong = self.fleet.wrong.iter();
        outcome
            .violations
            .extend(wrong.map(|what| Violation::new(Check::Liveness, "instance", what.clone())));
        outcome.ended_alone = self.fleet.ended_alone;
        outcome.crashes = self.fleet.crashes.clone();
        self.judge(&watchers, done, outcome, &bar)
    }

    /// I9: everything that came in is processed. Says what is not, when nothing moves any more.
    fn catch_up(
        &mut self,
        writer: JoinHandle<()>,
        watchers: &Watchers,
        pace: &Pace,
        bar: &Bar,
    ) -> anyhow::Result<Vec<Violation>> {
        let tier = &self.options.tier;
        let began = Instant::now();
        while !writer.is_finished() {
            interrupt::check()?;
            self.fleet.tick();
            bar.say(&format!("the rest of the input: {} of {}", pace.written(), tier.records));
            std::thread::sleep(Duration::from_millis(20));
        }
        if writer.join().is_err() {
            bail!("the input could not be written");
        }
        for (number, stage) in self.names.stages.clone().iter().enumerate() {
            let mut reader = Reader::new(&self.kafka)?;
            let mut last = BTreeMap::new();
            for partition in 0..tier.partitions {
                last.insert(partition, reader.last(&stage.input, partition)?);
            }
            let (mut before, mut moved) = (BTreeMap::new(), Instant::now());
            loop {
                interrupt::check()?;
                self.fleet.tick();
                let positions: BTreeMap<i32, i64> = {
                    let all = watchers.positions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    all.iter()
                        .filter(|((of, _), _)| *of == number)
                        .map(|((_, at), offset)| (*at, *offset))
                        .collect()
                };
                let behind =
                    |at: &i32| last[at].is_some_and(|last| positions.get(at).is_none_or(|it| *it <= last));
                let left: Vec<i32> = last.keys().copied().filter(|at| behind(at)).collect();
                if left.is_empty() || !watchers.found().is_empty() {
                    break;
                }
                if positions != before {
                    (before, moved) = (positions.clone(), Instant::now());
                }
                if moved.elapsed() > STANDSTILL {
                    let progress = last.iter().map(|(at, last)| Progress {
                        at: Partition::new(&stage.input, *at),
                        last: *last,
                        committed: positions.get(at).copied(),
                    });
                    return Ok(ends::liveness(&progress.collect::<Vec<_>>(), &[], began.elapsed()));
                }
                bar.say(&format!("{} catches up, {} partitions left", stage.name, left.len()));
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        self.journal.write("caught_up", json!({"seconds": began.elapsed().as_secs_f64()}));
        Ok(Vec::new())
    }

    /// The canaries' last transaction ends by its time-out if a broker was down just then.
    fn settle(&self, tier: &Tier) {
        let until = Instant::now() + Duration::from_secs(20);
        let ends = |partition| {
            let end = |isolation| self.kafka.watermarks(self.names.events(), partition, isolation).1;
            end("read_committed") == end("read_uncommitted")
        };
        while Instant::now() < until && interrupt::check().is_ok() && !(0..tier.partitions).all(ends) {
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn judge(
        &mut self,
        watchers: &Watchers,
        done: bool,
        outcome: &mut Outcome,
        bar: &Bar,
    ) -> anyhow::Result<()> {
        let judge = Judge {
            kafka: &self.kafka,
            names: &self.names,
            partitions: self.options.tier.partitions,
            watchers,
            done,
            states: &self.fleet.states(),
            offsets_topic: self.script.is_some(),
            say: &|text| bar.say(&text),
        };
        let verdict = judge.judge()?;
        outcome.violations.extend(verdict.violations);
        outcome.figures = verdict.figures;
        if let Some(script) = &self.script {
            bar.say("asking Kafka's own tool for open transactions");
            let open = script.open_transactions(&self.names, self.options.tier.nodes)?;
            outcome.violations.extend(ends::hanging(&[], &open));
        }
        let began = opened::began(&self.fleet.lives);
        outcome.left_open = (opened::count(&self.fleet.kills, &began, &verdict.ends), self.fleet.kills.len());
        for one in &began {
            let life = &self.fleet.lives[one.life];
            let data = json!({
                "stage": one.task.0, "partition": one.task.1, "slot": life.slot,
                "since": self.journal.since(one.at).as_secs_f64(),
            });
            self.journal.write("owner", data);
        }
        bar.end();
        Ok(())
    }

    /// What the brokers have is evidence.
    fn keep_cluster(&self) {
        let Some(script) = &self.script else { return };
        let to = self.options.out.join("kafka");
        match std::process::Command::new("cp").arg("-r").arg(&script.dir).arg(&to).status() {
            Ok(status) if status.success() => {
                eprintln!("the brokers' folders are copied to {}", to.display())
            }
            other => eprintln!("the brokers' folders could not be copied: {other:?}"),
        }
    }
}

fn observed(watchers: &Watchers, partition: i32) -> Option<i64> {
    let ends = watchers.ends.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    ends.get(&partition).copied()
}

fn create_topics(kafka: &Kafka, names: &Names, tier: &Tier) {
    let replicas = tier.nodes.clamp(1, 3) as i32;
    for (_, topic) in names.topics() {
        kafka.create_replicated(topic, tier.partitions, replicas, &[]);
    }
    for changelog in names.stages.iter().filter_map(|stage| stage.changelog.as_ref()) {
        // Compacted all the time.
        let config = [
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", "0.1"),
            ("segment.bytes", "1048576"),
        ];
        kafka.create_replicated(changelog, tier.partitions, replicas, &config);
    }
}

pub(crate) fn report_path(options: &Options) -> PathBuf {
    options.out.join("report.html")
}

/// What was only needed for the checks, and is large.
fn remove_bulk(options: &Options, fleet: &Fleet) {
    for state in fleet.states() {
        let _ = std::fs::remove_dir_all(&state);
        let _ = std::fs::remove_dir_all(state.with_extension("old"));
    }
    for partition in 0..options.tier.partitions {
        let _ = std::fs::remove_file(crate::watch::observed_path(&options.out, partition));
    }
}

/// An error if there is no cluster that answers.
pub fn check_cluster() -> anyhow::Result<()> {
    let brokers = std::env::var("FLECHTWERK_TEST_BROKERS").unwrap_or_default();
    if brokers.is_empty() {
        bail!("there is no cluster: scripts/chaos starts one, or set FLECHTWERK_TEST_BROKERS");
    }
    let client: BaseConsumer = Kafka { brokers: brokers.clone() }.config().create()?;
    let answer = client.fetch_metadata(None, ANSWER);
    answer.map(drop).with_context(|| format!("the cluster at {brokers} does not answer"))
}

/// An error if the folder can't be that of a new run: what lies there from another one would be taken for its own.
pub fn check_folder(out: &Path) -> anyhow::Result<()> {
    let context = || format!("the folder of the run, {}", out.display());
    std::fs::create_dir_all(out).with_context(context)?;
    if std::fs::read_dir(out).with_context(context)?.next().is_some() {
        bail!("{} is not empty: name a new folder with --out", out.display());
    }
    tempfile::tempfile_in(out).map(drop).with_context(context)
}

/// A new folder for a run, beside the program.
pub fn new_folder(parent: &Path, seed: u64) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    parent.join(format!("chaos-{}-{seed}", now.replace([':', 'Z'], "")))
}
