//! `cargo run -p xtask -- CHECK`: see the library.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

const USAGE: &str = "usage: xtask CHECK

  semantics   every numbered sentence and every attribute argument names a test that exists
  licences    every dependency is from the registry and has a licence that deny.toml allows";

fn main() -> ExitCode {
    let check = std::env::args().nth(1).unwrap_or_default();
    match run(&check) {
        Ok(Some(summary)) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The summary of a check without faults; `None` where there were some, which are printed.
fn run(check: &str) -> Result<Option<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("this crate has no parent folder")?;
    let (faults, summary) = match check {
        "semantics" => xtask::semantics::check(root)?,
        "licences" => xtask::licences::check(root)?,
        _ => anyhow::bail!("{USAGE}"),
    };
    for fault in &faults {
        eprintln!("{fault}");
    }
    if faults.is_empty() {
        return Ok(Some(summary));
    }
    eprintln!("{check}: {} faults", faults.len());
    Ok(None)
}
