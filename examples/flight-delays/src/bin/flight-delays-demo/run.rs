//! The course of the demo.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use flechtwerk::Topic;
use flight_delays::{AirportDelays, Airports, Delays, Flights};
use tokio::sync::oneshot;

use crate::cluster::{Cluster, Isolation, Reader};
use crate::data::Data;
use crate::instance::{Instance, Program};
use crate::kill::{OpenTransaction, kill_in_transaction};
use crate::load::Loader;
use crate::observe::observe;
use crate::screen::Screen;
use crate::verdict::{Comparison, compare};

const PARTITIONS: u32 = 4;
const TICK: Duration = Duration::from_millis(200);
/// Without any new result for so long, the rest is given up; the comparison then says what is missing.
const STALLED: Duration = Duration::from_secs(90);

/// How far loader and observer are.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) sent: AtomicU64,
    pub(crate) results: AtomicU64,
    pub(crate) stop: AtomicBool,
    latest: Mutex<BTreeMap<String, Delays>>,
}

impl Progress {
    /// The last result of each airport.
    pub(crate) fn latest(&self) -> MutexGuard<'_, BTreeMap<String, Delays>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the demo; true if all results were exact.
pub(crate) async fn run(brokers: &str, time: Duration) -> anyhow::Result<bool> {
    let data = Arc::new(Data::read()?);
    let logs = tempfile::tempdir()?;
    let program = Program::find(brokers, logs.path())?;
    println!(
        "{} flights from {} airports, US Bureau of Transportation Statistics",
        data.flights.len(),
        data.airports.len()
    );
    program.create_topics(PARTITIONS).await?;

    let cluster = Arc::new(Cluster::new(brokers)?);
    for topic in [Airports::NAME, Flights::NAME, AirportDelays::NAME] {
        for partition in cluster.partitions(topic)? {
            let end = cluster.ends(topic, partition)?.high;
            anyhow::ensure!(
                end == 0,
                "topic {topic} is not empty: run the demo on a fresh cluster, as `make demo` does"
            );
        }
    }
    let partitions = cluster.partitions(AirportDelays::NAME)?;
    let loader = Loader::new(brokers)?;
    loader.airports(&data)?;

    let mut run = Run {
        instances: vec![program.start("one")?, program.start("two")?],
        screen: Screen::new(data.flights.len() as u64)?,
        progress: Arc::default(),
        flights: data.flights.len() as u64,
        threads: Vec::new(),
    };
    run.screen.say("started instances one and two");
    let reader = Reader::new(brokers, AirportDelays::NAME, &partitions, Isolation::Committed)?;
    run.spawn("observer", move |progress| observe(&reader, &progress))?;
    let flights = Arc::clone(&data);
    run.spawn("loader", move |progress| loader.flights(&flights, time, &progress))?;

    run.until(|progress, flights| progress.results.load(Ordering::Relaxed) > flights * 2 / 5).await?;
    let open = run.kill_and_restart(&program, &cluster, &partitions).await?;
    run.until(|progress, flights| progress.results.load(Ordering::Relaxed) >= flights).await?;
    run.stop().await?;

    let comparison = compare(brokers, &partitions, &data.recount())?;
    run.screen.finish(&comparison.latest);
    Ok(report(&comparison, open, data.flights.len() as u64))
}

/// What is running.
struct Run {
    instances: Vec<Instance>,
    screen: Screen,
    progress: Arc<Progress>,
    flights: u64,
    threads: Vec<(&'static str, JoinHandle<anyhow::Result<()>>)>,
}

impl Run {
    fn spawn<F>(&mut self, name: &'static str, work: F) -> anyhow::Result<()>
    where
        F: FnOnce(Arc<Progress>) -> anyhow::Result<()> + Send + 'static,
    {
        let progress = Arc::clone(&self.progress);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(progress))?;
        self.threads.push((name, thread));
        Ok(())
    }

    /// Shows the progress until it is far enough, or stands still.
    async fn until(&mut self, enough: impl Fn(&Progress, u64) -> bool) -> anyhow::Result<()> {
        let mut last = (0, Instant::now());
        while !enough(&self.progress, self.flights) {
            tokio::time::sleep(TICK).await;
            self.show();
            self.check()?;
            let results = self.progress.results.load(Ordering::Relaxed);
            if results != last.0 {
                last = (results, Instant::now());
            } else if last.1.elapsed() > STALLED {
                self.screen.say(&format!("no new result for {STALLED:?}, giving up"));
                return Ok(());
            }
        }
        self.show();
        Ok(())
    }

    fn show(&mut self) {
        let (sent, results) = (&self.progress.sent, &self.progress.results);
        self.screen.update(
            sent.load(Ordering::Relaxed),
            results.load(Ordering::Relaxed),
            &self.progress.latest(),
        );
    }

    /// Nothing may have ended that should run.
    fn check(&mut self) -> anyhow::Result<()> {
        for instance in &mut self.instances {
            instance.check()?;
        }
        let ended = self.threads.iter().position(|(_, thread)| thread.is_finished());
        ended.map_or(Ok(()), |at| join(self.threads.swap_remove(at)))
    }

    async fn kill_and_restart(
        &mut self,
        program: &Program,
        cluster: &Arc<Cluster>,
        partitions: &[i32],
    ) -> anyhow::Result<OpenTransaction> {
        let mut victim = self.instances.pop().context("there is an instance to kill")?;
        let (pid, cluster, partitions) = (victim.pid()?, Arc::clone(cluster), partitions.to_vec());
        let (done, mut killed) = oneshot::channel();
        std::thread::Builder::new().name("killer".into()).spawn(move || {
            // The demo may have been interrupted meanwhile.
            let _ = done.send(kill_in_transaction(pid, &cluster, AirportDelays::NAME, &partitions));
        })?;
        let open = loop {
            tokio::select! {
                open = &mut killed => break open.context("the killer died")??,
                () = tokio::time::sleep(TICK) => self.show(),
            }
            self.check()?;
        };
        victim.killed().await?;
        let name = victim.name;
        self.screen.say(&format!(
            "killed instance {name} (SIGKILL) with a transaction open: {} records of it are in {}[{}]",
            open.records,
            AirportDelays::NAME,
            open.partition
        ));
        self.instances.push(program.start(name)?);
        self.screen.say(&format!("started instance {name} again"));
        Ok(open)
    }

    /// Ends instances and threads in good order.
    async fn stop(&mut self) -> anyhow::Result<()> {
        self.check()?;
        for instance in self.instances.drain(..) {
            instance.stop().await?;
        }
        self.progress.stop.store(true, Ordering::Relaxed);
        // The loader is done, or hopeless: it is not waited for.
        let threads = std::mem::take(&mut self.threads);
        threads.into_iter().filter(|(name, _)| *name == "observer").try_for_each(join)
    }
}

fn join((name, thread): (&'static str, JoinHandle<anyhow::Result<()>>)) -> anyhow::Result<()> {
    thread.join().map_err(|_| anyhow::anyhow!("the {name} panicked"))?
}

/// Prints the verdict; true if it is a good one.
fn report(comparison: &Comparison, open: OpenTransaction, flights: u64) -> bool {
    println!(
        "{flights} flights, {} results; {} records of aborted transactions were written and never seen",
        comparison.results, comparison.aborted
    );
    if comparison.aborted < open.records as u64 {
        println!("verdict: the kill did not hit an open transaction, so nothing is shown");
        return false;
    }
    if !comparison.is_exact() {
        println!("verdict: NOT exact, compared with a recount of the file:\n{}", comparison.differences());
        return false;
    }
    println!(
        "every result of {} airports equals the recount of the file, each once and in order\nverdict: exact",
        comparison.airports
    );
    true
}
