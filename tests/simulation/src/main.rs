//! `make simulate` and `make controls`: many histories, one again, or each flaw until it is caught.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use flechtwerk::simulation::Flaw;
use flechtwerk_simulation::controls::{Caught, control};
use flechtwerk_simulation::shrink::shrink;
use flechtwerk_simulation::{Plan, play, small};

/// Simulated clusters: one seed, one history.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plays histories and checks each.
    Run {
        /// How many.
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
        seeds: u64,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// Threads; all cores unless set.
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
        threads: Option<u16>,
    },
    /// Plays one history and tells what happens in it.
    Replay {
        /// A seed, or a plan as a failed run prints it.
        plan: Plan,
        /// Flaws to switch on, by name.
        #[arg(long, value_parser = named)]
        flaw: Vec<Flaw>,
    },
    /// Switches each flaw on until a check catches it.
    Controls {
        /// Histories for each at most.
        #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..u64::MAX))]
        seeds: u64,
        /// Only this one.
        #[arg(long, value_parser = named)]
        flaw: Option<Flaw>,
    },
    /// Searches the small model: two owners, one partition, two records, every fault at every step.
    Small {
        /// Fences at most.
        #[arg(long, default_value_t = 2)]
        fences: u64,
        /// Records.
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(i64).range(1..))]
        records: i64,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run { seeds, from, threads } => run(from, seeds, threads),
        Command::Replay { plan, flaw } => replay(&plan, &flaw),
        Command::Controls { seeds, flaw } => controls(seeds, flaw),
        Command::Small { fences, records } => small_model(fences, records),
    }
}

#[derive(Default)]
struct Totals {
    played: AtomicU64,
    commits: AtomicU64,
    ends: AtomicU64,
    open: AtomicU64,
    millis: AtomicU64,
}

fn run(from: u64, seeds: u64, threads: Option<u16>) -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = threads.map_or(cores, usize::from);
    // Each thread takes one number more than there are, to see that it is over.
    if from.checked_add(seeds).and_then(|end| end.checked_add(threads as u64)).is_none() {
        eprintln!("there are no {seeds} seeds from {from} on: the last one is {}", u64::MAX);
        return ExitCode::from(2);
    }
    let (next, stop, totals) = (AtomicU64::new(from), AtomicBool::new(false), Totals::default());
    let failed: Mutex<Vec<Plan>> = Mutex::new(Vec::new());
    let begun = Instant::now();
    let end = from + seeds;
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let plan = Plan::of(seed);
                    let outcome = play(&plan, &[], false);
                    totals.played.fetch_add(1, Ordering::Relaxed);
                    totals.commits.fetch_add(outcome.commits as u64, Ordering::Relaxed);
                    totals.ends.fetch_add(outcome.ends.0 as u64, Ordering::Relaxed);
                    totals.open.fetch_add(outcome.ends.1 as u64, Ordering::Relaxed);
                    totals.millis.fetch_add(outcome.time / 1000, Ordering::Relaxed);
                    if !outcome.violations.is_empty()
                        && let Ok(mut failed) = failed.lock()
                    {
                        failed.push(plan);
                        stop.store(failed.len() >= 5, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let took = begun.elapsed();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (played, ends) = (count(&totals.played), count(&totals.ends));
    let rate = played as f64 / took.as_secs_f64();
    println!(
        "{played} histories from seed {from} in {:.1} s: {rate:.0} a second, {:.0} a second for each of {threads} threads",
        took.as_secs_f64(),
        rate / threads as f64,
    );
    // What a core does when it has nothing else to do.
    if let Some(seconds) = cpu_seconds().filter(|seconds| *seconds > 0.0) {
        println!("{:.0} histories for each second of a core's time", played as f64 / seconds);
    }
    println!(
        "{} transactions committed, {} h of simulated time, {ends} kills and pauses, {} of them with a transaction open",
        count(&totals.commits),
        count(&totals.millis) / 3_600_000,
        count(&totals.open),
    );
    let failed = failed.into_inner().unwrap_or_default();
    for plan in &failed {
        report(&shrink(plan, &[]), &[]);
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// User and system time of this process, where the system tells it by a file.
fn cpu_seconds() -> Option<f64> {
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may have spaces: the 12th and 13th field.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS)
}

/// Says what a history breaks, and how to see it again.
fn report(plan: &Plan, flaws: &[Flaw]) {
    let outcome = play(plan, flaws, true);
    println!("\n--- history {plan}");
    println!("{} processes, {} partitions, {} inputs", plan.processes, plan.partitions, plan.inputs);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    outcome.violations.iter().for_each(|violation| println!("{violation}"));
    if outcome.violations.is_empty() {
        println!("every check holds");
    }
    let with: String = flaws.iter().map(|flaw| format!(" --flaw {}", flaw.name())).collect();
    match flaws {
        [] => println!("again: make simulate SEED={plan}"),
        _ => println!("again: scripts/simulate replay {plan}{with}"),
    }
}

fn named(name: &str) -> Result<Flaw, String> {
    Flaw::ALL.iter().copied().find(|flaw| flaw.name() == name).ok_or_else(|| {
        let names: Vec<&str> = Flaw::ALL.iter().map(|flaw| flaw.name()).collect();
        format!("known are {}", names.join(", "))
    })
}

fn replay(plan: &Plan, named: &[Flaw]) -> ExitCode {
    let mut flaws = Vec::new();
    for flaw in named.iter().flat_map(|flaw| std::iter::once(flaw).chain(flaw.defences())) {
        if !flaws.contains(flaw) {
            flaws.push(*flaw);
        }
    }
    report(plan, &flaws);
    if play(plan, &flaws, false).violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn controls(seeds: u64, only: Option<Flaw>) -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let mut survivors = 0;
    println!(
        "{:<24} {:<44} {:>9} {:>9}  with its defences off alone",
        "flaw", "caught by", "histories", "time"
    );
    for flaw in Flaw::ALL.iter().copied().filter(|flaw| only.is_none_or(|only| *flaw == only)) {
        if flaw.is_defence() && only.is_none() {
            continue;
        }
        let caught = control(flaw, 1..seeds + 1);
        survivors += usize::from(caught.by.is_none());
        show(&caught);
    }
    if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(caught: &Caught) {
    let by = match &caught.by {
        Some((_, violations)) => {
            let mut names: Vec<String> =
                violations.iter().map(|one| format!("{} {}", one.check.number(), one.kind)).collect();
            names.dedup();
            names.truncate(2);
            names.join(", ")
        }
        None => "NOT CAUGHT".to_owned(),
    };
    let defences = match (&caught.defences, caught.paired) {
        (_, 0) => "-".to_owned(),
        ((0, _), paired) => format!("{paired} histories hold"),
        ((count, first), paired) => {
            let first = first
                .as_ref()
                .map_or_else(String::new, |first| format!("{} {}", first.check.number(), first.kind));
            format!("{count} of {paired} are caught ({first})")
        }
    };
    let time = Duration::from_millis(caught.time.as_millis() as u64);
    println!("{:<24} {by:<44} {:>9} {time:>9.2?}  {defences}", caught.flaw.name(), caught.histories);
    if let Some((plan, _)) = &caught.by {
        println!("{:<24} scripts/simulate replay {} --flaw {}", "", plan.seed, caught.flaw.name());
    }
}

fn small_model(fences: u64, records: i64) -> ExitCode {
    let begun = Instant::now();
    match small::search(fences, records, usize::MAX) {
        Ok(found) => {
            println!(
                "{} states, {} steps, {} ends, in {:.1?}",
                found.states,
                found.steps,
                found.ends,
                begun.elapsed()
            );
            ExitCode::SUCCESS
        }
        Err(path) => {
            println!("{path}");
            ExitCode::FAILURE
        }
    }
}
