//! The demo: real flights through two instances of the pipeline, one of which is killed while its transaction is open;
//! in the end every result is compared with a plain recount of the file.
//!
//! It needs an empty cluster, named by `FLECHTWERK_BOOTSTRAP_SERVERS`. `make demo` starts one, and this.

mod cluster;
mod data;
mod instance;
mod kill;
mod load;
mod observe;
mod run;
mod screen;
mod verdict;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

/// Runs real flights through two instances, kills one in mid-transaction, and compares the results with a recount.
#[derive(Parser)]
struct Args {
    /// How long the input is to last
    #[arg(long, value_name = "N", default_value_t = 35, value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,

    /// Where the empty cluster is
    #[arg(long, env = "FLECHTWERK_BOOTSTRAP_SERVERS", value_name = "HOST:PORT")]
    bootstrap_servers: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    // However this ends, dropping the future of the run kills the instances.
    let end = tokio::select! {
        end = run::run(&args.bootstrap_servers, Duration::from_secs(args.seconds)) => end,
        end = interrupted() => end,
    };
    match end {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn interrupted() -> anyhow::Result<bool> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    anyhow::bail!("interrupted, the instances are stopped")
}
