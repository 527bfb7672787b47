//! An instance of the pipeline: the real binary, as a process of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// For a clean stop.
const STOP_LIMIT: Duration = Duration::from_secs(40);

/// The pipeline's binary and where its output goes.
pub(crate) struct Program {
    path: PathBuf,
    brokers: String,
    logs: PathBuf,
}

impl Program {
    /// The binary `flight-delays` beside this one.
    pub(crate) fn find(brokers: &str, logs: &Path) -> anyhow::Result<Self> {
        let path = std::env::current_exe()?.with_file_name("flight-delays");
        anyhow::ensure!(
            path.is_file(),
            "{} is missing, build it: cargo build --package flight-delays --bins",
            path.display()
        );
        Ok(Self { path, brokers: brokers.to_owned(), logs: logs.to_owned() })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.env("FLECHTWERK_BOOTSTRAP_SERVERS", &self.brokers).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Makes the topics that are missing.
    pub(crate) async fn create_topics(&self, partitions: u32) -> anyhow::Result<()> {
        let mut command = self.command();
        command.args(["topics", "create", "--partitions", &partitions.to_string()]);
        let output = command.output().await.context("starting `flight-delays topics create`")?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(
            output.status.success(),
            "`flight-delays topics create` failed, {}:\n{said}",
            output.status
        );
        Ok(())
    }

    /// Starts an instance that keeps its id over restarts, so that it has its partitions back at once.
    pub(crate) fn start(&self, name: &'static str) -> anyhow::Result<Instance> {
        let log = self.logs.join(format!("{name}.log"));
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("opening {}", log.display()))?;
        let mut command = self.command();
        command.args(["run", "--store", "memory", "--instance-id", name]);
        let child = command.stdout(out.try_clone()?).stderr(out).spawn();
        let child = child.with_context(|| format!("starting {}", self.path.display()))?;
        Ok(Instance { name, child, log })
    }
}

/// A running instance. Dropping it kills it.
pub(crate) struct Instance {
    pub(crate) name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Instance {
    /// Its process id, while it runs.
    pub(crate) fn pid(&self) -> anyhow::Result<Pid> {
        let pid = self.child.id().with_context(|| format!("instance {} does not run", self.name))?;
        Ok(Pid::from_raw(pid.try_into()?))
    }

    /// An error with the end of its log if it has ended by itself.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            Some(status) => Err(self.ended(&status)),
            None => Ok(()),
        }
    }

    /// Takes note of its end after a kill.
    pub(crate) async fn killed(&mut self) -> anyhow::Result<()> {
        self.child.wait().await.map(drop).context("waiting for the killed instance")
    }

    /// A clean stop.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        kill(self.pid()?, Signal::SIGTERM).with_context(|| format!("stopping instance {}", self.name))?;
        match tokio::time::timeout(STOP_LIMIT, self.child.wait()).await {
            Ok(status) => {
                let status = status?;
                if status.success() { Ok(()) } else { Err(self.ended(&status)) }
            }
            Err(_) => {
                anyhow::bail!("instance {} did not stop within {STOP_LIMIT:?}{}", self.name, self.tail())
            }
        }
    }

    fn ended(&self, status: &std::process::ExitStatus) -> anyhow::Error {
        anyhow::anyhow!("instance {} ended, {status}{}", self.name, self.tail())
    }

    fn tail(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(15)..].join("\n  ");
        if last.is_empty() { String::new() } else { format!("; its last lines:\n  {last}") }
    }
}
