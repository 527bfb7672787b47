//! What the macros add to `cargo check`: 100 stages with their topics and states, and the same functions without
//! any of the macros, each as a crate of its own whose dependencies are built before.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::contestant::children_cpu;

/// What a cold check of one crate takes, at best.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Time on the clock.
    pub time: Duration,
    /// CPU time of cargo and rustc: what the clock would say if nothing else ran.
    pub cpu: Duration,
}

/// The best of several cold checks.
#[derive(Clone, Copy, Debug)]
pub struct Checks {
    /// With the macros.
    pub with: Check,
    /// The same functions without.
    pub without: Check,
}

/// Generates both crates with `stages` stages and checks them in turn, `repeats` times.
pub fn measure(stages: usize, repeats: usize) -> anyhow::Result<Checks> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace is gone")?;
    let folder = tempfile::tempdir()?;
    let with = generate(workspace, folder.path(), "with-macros", &with_macros(stages))?;
    let without = generate(workspace, folder.path(), "without-macros", &without_macros(stages))?;
    // Beside this program, so that the dependencies are built once and not in every run.
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).context("this program has no folder")?.join("macro-cost");
    let mut best = Checks { with: check(&with, &target)?, without: check(&without, &target)? };
    for _ in 0..repeats {
        best.with = best.with.min(check(&with, &target)?);
        best.without = best.without.min(check(&without, &target)?);
    }
    Ok(best)
}

impl Check {
    fn min(self, other: Check) -> Check {
        Check { time: self.time.min(other.time), cpu: self.cpu.min(other.cpu) }
    }
}

fn generate(workspace: &Path, folder: &Path, name: &str, source: &str) -> anyhow::Result<PathBuf> {
    let folder = folder.join(name);
    std::fs::create_dir_all(folder.join("src"))?;
    let flechtwerk = workspace.join("flechtwerk");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         flechtwerk = {{ path = {flechtwerk:?}, default-features = false }}\n\
         serde = {{ version = \"1\", features = [\"derive\"] }}\n"
    );
    std::fs::write(folder.join("Cargo.toml"), manifest)?;
    // The same versions as everywhere else, and nothing to resolve.
    std::fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    std::fs::copy(workspace.join("rust-toolchain.toml"), folder.join("rust-toolchain.toml"))?;
    std::fs::write(folder.join("src/lib.rs"), source)?;
    Ok(folder)
}

/// A cold check of the crate alone: not incremental, and its source is new.
fn check(krate: &Path, target: &Path) -> anyhow::Result<Check> {
    let source = krate.join("src/lib.rs");
    let text = std::fs::read(&source)?;
    std::fs::write(&source, text)?;
    let (started, cpu) = (Instant::now(), children_cpu()?);
    let output = Command::new("cargo")
        .args(["check", "--quiet"])
        .current_dir(krate)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTFLAGS")
        .output()
        .context("can't start cargo")?;
    let check = Check { time: started.elapsed(), cpu: children_cpu()?.saturating_sub(cpu) };
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(check)
}

fn with_macros(stages: usize) -> String {
    let mut source = String::from("use flechtwerk::prelude::*;\nuse serde::{Deserialize, Serialize};\n\n");
    for n in 0..=stages {
        let _ =
            writeln!(source, "#[topic(\"topic-{n}\", key = Utf8, value = Json<u64>)]\npub struct Topic{n};");
    }
    for n in 0..stages {
        let next = n + 1;
        let _ = write!(
            source,
            "
#[derive(State, Serialize, Deserialize, Default, Clone)]
pub struct State{n} {{ n: u64 }}
#[transformer(inputs = [Topic{n}], state = State{n})]
pub async fn stage_{n}(record: Record<Topic{n}>, state: &mut State<State{n}>, out: &mut Out<Topic{next}>) -> flechtwerk::Result {{
    let count = state.get_or_insert_default();
    count.n += record.value;
    out.send(record.key, count.n);
    Ok(())
}}
"
        );
    }
    let names: Vec<String> = (0..stages).map(|n| format!("stage_{n}")).collect();
    let _ = writeln!(source, "\nflechtwerk::pipeline!(pub CHAIN = \"chain\": [{}]);", names.join(", "));
    source
}

fn without_macros(stages: usize) -> String {
    let mut source = String::from(
        "use serde::{Deserialize, Serialize};\n\n\
         pub struct Record<T> { pub key: String, pub value: u64, pub of: std::marker::PhantomData<T> }\n\
         pub struct Out<T> { pub sent: Vec<(String, u64)>, pub of: std::marker::PhantomData<T> }\n\
         impl<T> Out<T> { pub fn send(&mut self, key: String, value: u64) { self.sent.push((key, value)); } }\n",
    );
    for n in 0..=stages {
        let _ = writeln!(source, "pub struct Topic{n};");
    }
    for n in 0..stages {
        let next = n + 1;
        let _ = write!(
            source,
            "
#[derive(Serialize, Deserialize, Default, Clone)]
pub struct State{n} {{ n: u64 }}
pub async fn stage_{n}(record: Record<Topic{n}>, state: &mut Option<State{n}>, out: &mut Out<Topic{next}>) -> flechtwerk::Result {{
    let count = state.get_or_insert_default();
    count.n += record.value;
    out.send(record.key, count.n);
    Ok(())
}}
"
        );
    }
    source
}
