//! `chaos --help` says what it can do.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use flechtwerk_chaos::outcome::{Outcome, told};
use flechtwerk_chaos::run::{self, Options};
use flechtwerk_chaos::tier::{Name, Overrides};

/// Runs a pipeline under faults on the cluster that the environment names, and checks every invariant of the guarantee.
#[derive(Parser)]
struct Arguments {
    /// The numbers to begin with
    #[arg(long, value_enum, default_value = "nightly")]
    tier: Name,
    #[command(flatten)]
    other: Overrides,
    /// The schedule and the input follow from it; drawn where it is not given
    #[arg(long, env = "SEED")]
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
}

fn main() -> ExitCode {
    match start(Arguments::parse()) {
        Ok(outcome) if outcome.violations.is_empty() && outcome.counts() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("chaos: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn start(arguments: Arguments) -> anyhow::Result<Outcome> {
    let seed = arguments.seed.unwrap_or_else(rand::random);
    let this = std::env::current_exe().context("the folder of this program")?;
    let out = arguments.out.unwrap_or_else(|| run::new_folder(&std::env::temp_dir(), seed));
    let pipeline = arguments.pipeline.unwrap_or_else(|| this.with_file_name("chaos-pipeline"));
    let tier = arguments.tier.tier().with(&arguments.other);
    eprintln!("SEED={seed}, everything is kept in {}", out.display());
    #[cfg(feature = "flaws")]
    let env = arguments.flaw.into_iter().map(broken).collect();
    #[cfg(not(feature = "flaws"))]
    let env = Vec::new();
    let options = Options { tier, seed, out, pipeline, env };
    let outcome = run::run(&options)?;
    print!("{}", told(&options, &outcome));
    Ok(outcome)
}

#[cfg(feature = "flaws")]
fn flaw(name: &str) -> Result<flechtwerk::Flaw, String> {
    let known = flechtwerk::Flaw::ALL;
    known.iter().copied().find(|flaw| flaw.name() == name).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|flaw| flaw.name()).collect();
        format!("known are {}", names.join(", "))
    })
}

/// The variable that breaks the rule, and what else would keep it.
#[cfg(feature = "flaws")]
fn broken(flaw: flechtwerk::Flaw) -> (String, String) {
    eprintln!("broken on purpose: {}", flaw.what());
    let all = std::iter::once(&flaw).chain(flaw.defences());
    let names: Vec<&str> = all.map(|flaw| flaw.name()).collect();
    ("FLECHTWERK_FLAWS".to_owned(), names.join(","))
}
