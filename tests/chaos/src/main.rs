//! `chaos --help` says what it can do.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use flechtwerk_chaos::driver::crash_points;
use flechtwerk_chaos::interrupt::{self, Interrupted};
use flechtwerk_chaos::outcome::told;
use flechtwerk_chaos::run::{self, Options};
use flechtwerk_chaos::tier::{Name, Overrides};
use flechtwerk_chaos::total;

/// Runs a pipeline under faults on the cluster that the environment names, and checks every invariant of the guarantee.
///
/// The status is 1 if an invariant was violated, if something grows, or if the run says too little; 2 is an error of the rig or
/// of the cluster, and 130 a run that was interrupted.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true, allow_negative_numbers = true)]
struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    run: Run,
}

#[derive(Subcommand)]
enum Other {
    /// Adds up what several runs have done, and says whether together they count as one of the tier
    AddUp {
        /// The numbers that are wanted
        #[arg(long, value_enum, default_value = "nightly")]
        tier: Name,
        /// The folders of the runs
        #[arg(required = true)]
        folders: Vec<PathBuf>,
    },
}

#[derive(clap::Args)]
struct Run {
    /// The numbers to begin with
    #[arg(long, value_enum, default_value = "nightly")]
    tier: Name,
    #[command(flatten)]
    numbers: Overrides,
    /// The schedule and the input follow from it; drawn where it is not given
    #[arg(long)]
    seed: Option<u64>,
    /// The folder for report, log and the instances' logs; a new one where it is not given
    #[arg(long)]
    out: Option<PathBuf>,
    /// Rules of the runtime to break, to see whether the rig notices (scripts/chaos builds what is needed)
    #[cfg(feature = "flaws")]
    #[arg(long, value_parser = flaw)]
    flaw: Option<flechtwerk::Flaw>,
    /// The program under test; the one beside this
    #[arg(long)]
    pipeline: Option<PathBuf>,
    /// Only says whether these flags make sense: nothing is started
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.other {
        Some(Other::AddUp { tier, folders }) => total::add_up(&folders, &tier.tier(), &crash_points()),
        None => start(arguments.run),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("chaos: {error:#}");
            ExitCode::from(if error.is::<Interrupted>() { 130 } else { 2 })
        }
    }
}

/// True if all is well.
fn start(arguments: Run) -> anyhow::Result<bool> {
    let tier = arguments.tier.tier().with(&arguments.numbers);
    if let Some(wrong) = tier.wrong() {
        bail!("{wrong}");
    }
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => seed_of(std::env::var("SEED").ok())?.unwrap_or_else(rand::random),
    };
    if let Some(out) = &arguments.out {
        run::check_folder(out)?;
    }
    if arguments.check {
        return Ok(true);
    }
    let this = std::env::current_exe().context("the folder of this program")?;
    let out = arguments.out.unwrap_or_else(|| run::new_folder(&std::env::temp_dir(), seed));
    let pipeline = arguments.pipeline.unwrap_or_else(|| this.with_file_name("chaos-pipeline"));
    #[cfg(feature = "flaws")]
    let broken = arguments.flaw.map(broken).unwrap_or_default();
    #[cfg(not(feature = "flaws"))]
    let broken = Vec::new();
    run::check_cluster()?;
    interrupt::listen()?;
    eprintln!("SEED={seed}, everything is kept in {}", out.display());
    let options = Options { tier, seed, out, pipeline, broken };
    let outcome = run::run(&options)?;
    print!("{}", told(&options, &outcome));
    Ok(outcome.holds() && outcome.counts())
}

/// The seed of the environment, where it is set to something.
fn seed_of(variable: Option<String>) -> anyhow::Result<Option<u64>> {
    let text = variable.filter(|text| !text.is_empty());
    text.map(|text| {
        text.parse().with_context(|| format!("SEED={text} is not a number from 0 to {}", u64::MAX))
    })
    .transpose()
}

#[cfg(feature = "flaws")]
fn flaw(name: &str) -> Result<flechtwerk::Flaw, String> {
    let known = flechtwerk::Flaw::ALL;
    known.iter().copied().find(|flaw| flaw.name() == name).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|flaw| flaw.name()).collect();
        format!("known are {}", names.join(", "))
    })
}

/// The names of the rule, and of what else would keep it.
#[cfg(feature = "flaws")]
fn broken(flaw: flechtwerk::Flaw) -> Vec<String> {
    eprintln!("broken on purpose: {}", flaw.what());
    let all = std::iter::once(&flaw).chain(flaw.defences());
    all.map(|flaw| flaw.name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_of_the_environment_is_a_number_or_nothing() {
        assert_eq!(seed_of(None).expect("none"), None);
        assert_eq!(seed_of(Some(String::new())).expect("none"), None);
        assert_eq!(seed_of(Some("7".to_owned())).expect("a number"), Some(7));
        let error = format!("{:#}", seed_of(Some("abc".to_owned())).expect_err("no number"));
        assert!(error.starts_with("SEED=abc is not a number"), "{error}");
    }

    #[test]
    fn flags_and_commands_are_as_they_are_told() {
        let run = |text: &str| Arguments::try_parse_from(text.split(' ')).map(|all| all.run).ok();
        assert!(run("chaos --tier long --steady 1 --seed 7").is_some_and(|run| run.seed == Some(7)));
        assert!(run("chaos --tier weekly").is_none() && run("chaos --minutes -1").is_none());
        assert!(run("chaos --instances 0").is_none() && run("chaos add-up").is_none());
        let both =
            Arguments::try_parse_from(["chaos", "add-up", "--tier", "release", "a", "b"]).expect("two");
        assert!(
            matches!(both.other, Some(Other::AddUp { tier: Name::Release, folders }) if folders.len() == 2)
        );
    }
}
