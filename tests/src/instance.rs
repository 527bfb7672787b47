//! Pipelines as child processes, and what is done to them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Kafka, wait_within};

/// How to start instances of one pipeline: cluster, namespace, topics and flags.
#[derive(Clone, Debug)]
pub struct Rig {
    binary: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    dir: std::sync::Arc<tempfile::TempDir>,
    logs: Option<PathBuf>,
    /// Keeps the groups, ids and changelogs of tests apart.
    pub namespace: String,
}

impl Rig {
    /// A rig with a namespace of its own. `binary`: `env!("CARGO_BIN_EXE_..")`.
    pub fn new(kafka: &Kafka, binary: &str) -> Rig {
        let namespace = kafka.unique("t") + "-";
        let dir = std::sync::Arc::new(tempfile::tempdir().expect("a folder"));
        let rig = Rig {
            binary: binary.into(),
            args: Vec::new(),
            env: Vec::new(),
            dir,
            logs: None,
            namespace: namespace.clone(),
        };
        rig.arg("--bootstrap-servers", &kafka.brokers)
            .arg("--namespace", &namespace)
            .arg("--store", "memory")
            .arg("--session-timeout", "6s")
            .arg("--heartbeat-interval", "500ms")
    }

    /// Starts another binary, with all else as it is.
    pub fn program(mut self, binary: &str) -> Rig {
        self.binary = binary.into();
        self
    }

    /// Adds a flag with a value; a later one of the same name wins.
    pub fn arg(mut self, name: &str, value: &str) -> Rig {
        let repeatable = ["--topic", "--stage", "-X"].contains(&name);
        if !repeatable && let Some(at) = self.args.iter().position(|one| one == name) {
            self.args.drain(at..at + 2);
        }
        self.args.extend([name.into(), value.into()]);
        self
    }

    /// Adds a flag without a value.
    pub fn flag(mut self, name: &str) -> Rig {
        self.args.push(name.into());
        self
    }

    /// Runs only this stage.
    pub fn stage(self, name: &str) -> Rig {
        self.arg("--stage", name)
    }

    /// Maps a topic of the pipeline to one of the cluster, in place of what it was mapped to.
    pub fn topic(mut self, name: &str, topic: &str) -> Rig {
        if let Some(at) = self.args.iter().position(|one| one.starts_with(&format!("{name}="))) {
            self.args.drain(at - 1..=at);
        }
        self.arg("--topic", &format!("{name}={topic}"))
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Rig {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Keeps the instances' logs: `PATH-1.log` and so on.
    pub fn keep_logs(mut self, path: PathBuf) -> Rig {
        self.logs = Some(path);
        self
    }

    /// A folder for state and logs, removed with the last clone of the rig.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The application id of a stage.
    pub fn application_id(&self, pipeline: &str, stage: &str) -> String {
        format!("{}{pipeline}-{stage}", self.namespace)
    }

    fn command(&self, subcommand: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(subcommand)
            .args(&self.args)
            .env_clear()
            .envs(std::env::vars().filter(|(name, _)| !name.starts_with("FLECHTWERK_")))
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command that takes nothing but cluster, names and stage; gives status, stdout and stderr.
    pub fn tool(&self, subcommand: &[&str]) -> (i32, String, String) {
        let known = ["--bootstrap-servers", "--namespace", "--stage", "--topic"];
        let mut args = Vec::new();
        for pair in self.args.windows(2).filter(|pair| known.contains(&pair[0].as_str())) {
            args.extend_from_slice(pair);
        }
        Rig { args, ..self.clone() }.run(subcommand)
    }

    /// Starts an instance.
    pub fn start(&self) -> Instance {
        static STARTS: AtomicU32 = AtomicU32::new(1);
        let path = match &self.logs {
            None => self.dir().join(format!("log-{:08x}", rand::random::<u32>())),
            Some(path) => {
                PathBuf::from(format!("{}-{}.log", path.display(), STARTS.fetch_add(1, Ordering::SeqCst)))
            }
        };
        let log = File::create(&path).expect("a log file");
        let child = self
            .command(&["run"])
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("start {}: {error}", self.binary.display()));
        Instance { child, log: path, ended: None }
    }

    /// Runs a subcommand to its end; gives status, stdout and stderr.
    pub fn run(&self, subcommand: &[&str]) -> (i32, String, String) {
        let output = self.command(subcommand).output().expect("run the binary");
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }
}

/// A running pipeline. Dropping it kills it.
#[derive(Debug)]
pub struct Instance {
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl Instance {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        // A process that has just ended is no error: the test sees its status.
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.ended = Some(self.child.wait().expect("wait for the child"));
    }

    /// SIGTERM as soon as it hears it, and its exit status within `limit`. Before that it would end as any process does, which
    /// says nothing about its stop.
    #[track_caller]
    pub fn terminate(&mut self, limit: Duration) -> i32 {
        let what = format!("SIGTERM is heard; its log is {}", self.log.display());
        wait_within(limit, &what, || self.hears(Signal::SIGTERM) || self.try_wait().is_some());
        self.signal(Signal::SIGTERM);
        self.wait(limit)
    }

    /// It has a handler for `signal`.
    fn hears(&self, signal: Signal) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
        mask & (1 << (signal as i32 - 1)) != 0
    }

    /// Its exit status, waited for at most `limit`.
    #[track_caller]
    pub fn wait(&mut self, limit: Duration) -> i32 {
        let log = self.log.clone();
        let what = format!("the process ends; its log is in {}:\n{}", log.display(), self.log());
        wait_within(limit, &what, || self.try_wait().is_some());
        self.ended.and_then(|status| status.code()).unwrap_or(-1)
    }

    /// Its status, if it has ended.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("wait for the child");
        }
        self.ended
    }

    /// Everything it has written so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The file with it.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Waits until its log contains `text`.
    #[track_caller]
    pub fn wait_for_log(&mut self, text: &str) {
        wait_within(crate::DEADLINE, &format!("{text:?} in the log {}", self.log.display()), || {
            self.log().contains(text)
        });
    }

    /// Waits until its consumer holds the records of a partition up to `offset` (needs `Case::log_fetches`).
    #[track_caller]
    pub fn wait_fetched(&self, topic: &str, partition: i32, offset: i64) {
        let place = format!(" on {topic} [{partition}] fetch queue ");
        wait_within(crate::DEADLINE, &format!("{topic}/{partition} is fetched up to {offset}"), || {
            self.log().lines().filter(|line| line.contains(&place)).any(|line| {
                let last = line.split("last_offset ").nth(1).and_then(|rest| rest.split(',').next());
                last.and_then(|last| last.parse::<i64>().ok()).is_some_and(|last| last >= offset)
            })
        });
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.try_wait().is_none() {
            self.kill();
        }
        if std::thread::panicking() {
            eprintln!("--- log of process {}:\n{}", self.child.id(), self.log());
        }
    }
}
