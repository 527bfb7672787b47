//! Contestants as processes of their own, so that what they take can be told apart.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::{TimeVal, TimeValLike as _};
use nix::unistd::Pid;

use crate::cluster::Cluster;

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The hand-written loop.
    Loop,
    /// The stage `count`, state in memory.
    StageMemory,
    /// The stage `count`, state in RocksDB.
    StageRocksDb,
}

/// A contestant and how it is set up.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// Who.
    pub kind: Kind,
    /// Milliseconds between two commits of a partition.
    pub commit_interval: u64,
    /// Further arguments.
    pub arguments: Vec<String>,
}

/// One run of a contestant: topics and a group of its own.
pub struct Run {
    cluster: Cluster,
    contestant: Contestant,
    /// The input topic.
    pub input: String,
    own_input: bool,
    stage: Option<String>,
    /// The consumer group.
    pub group: String,
    /// The output topic.
    pub output: String,
    /// The changelog.
    pub changelog: String,
    /// Partitions of all topics.
    pub partitions: i32,
    state: PathBuf,
}

static RUNS: AtomicU32 = AtomicU32::new(0);

impl Contestant {
    /// With commits every 50 ms.
    pub fn new(kind: Kind) -> Contestant {
        Contestant { kind, commit_interval: 50, arguments: Vec::new() }
    }

    /// Creates what one run needs.
    pub fn prepare(&self, cluster: &Cluster, input: &str) -> anyhow::Result<Run> {
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("run{}-{number}-", std::process::id());
        let group = format!("{namespace}bench-count");
        let run = Run {
            cluster: cluster.clone(),
            contestant: self.clone(),
            input: input.into(),
            own_input: false,
            stage: None,
            output: format!("{namespace}counts"),
            changelog: format!("{group}-changelog"),
            group,
            partitions: cluster.partitions(input)? as i32,
            state: std::env::temp_dir().join(format!("flechtwerk-bench-{namespace}state")),
        };
        cluster.create_topic(&run.output, run.partitions, false)?;
        cluster.create_topic(&run.changelog, run.partitions, true)?;
        Ok(run)
    }

    /// The same with an input topic of its own, empty.
    pub fn prepare_with_input(&self, cluster: &Cluster, partitions: i32) -> anyhow::Result<Run> {
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let input = format!("run{}-{number}-words", std::process::id());
        cluster.create_topic(&input, partitions, false)?;
        let mut run = self.prepare(cluster, &input)?;
        run.own_input = true;
        Ok(run)
    }
}

impl Run {
    /// Starts the process.
    pub fn start(&self) -> anyhow::Result<Running> {
        let folder =
            std::env::current_exe()?.parent().map(Path::to_owned).context("this program has no folder")?;
        let interval = self.contestant.commit_interval;
        let mut command;
        match self.contestant.kind {
            Kind::Loop => {
                command = Command::new(folder.join("bench-loop"));
                command.args([
                    "--bootstrap-servers",
                    &self.cluster.bootstrap_servers,
                    "--group",
                    &self.group,
                ]);
                command.args(["--input", &self.input, "--output", &self.output]);
                command.args(["--commit-interval", &interval.to_string()]);
            }
            Kind::StageMemory | Kind::StageRocksDb => {
                let store = if self.contestant.kind == Kind::StageMemory { "memory" } else { "rocksdb" };
                command = Command::new(folder.join("bench-stage"));
                command.args([
                    "run",
                    "--bootstrap-servers",
                    &self.cluster.bootstrap_servers,
                    "--store",
                    store,
                ]);
                command.args([
                    "--namespace",
                    self.namespace(),
                    "--stage",
                    self.stage.as_deref().unwrap_or("count"),
                ]);
                command.args([
                    "--topic",
                    &format!("words={}", self.input),
                    "--topic",
                    &format!("counts={}", self.output),
                ]);
                command.args(["--commit-interval", &format!("{interval}ms"), "--max-poll-records", "5000"]);
                command.arg("--state-dir").arg(&self.state);
            }
        }
        command.args(&self.contestant.arguments);
        Running::start(
            &format!("{:?}", self.contestant.kind),
            &mut command,
            std::env::var_os("BENCH_LOUD").is_some(),
        )
    }

    /// Runs another stage of the pipeline than `count`.
    pub fn stage(&mut self, stage: &str) {
        let namespace = self.namespace().to_owned();
        self.group = format!("{namespace}bench-{stage}");
        self.stage = Some(stage.into());
    }

    fn namespace(&self) -> &str {
        self.output.strip_suffix("counts").unwrap_or_default()
    }

    /// Deletes what is on this machine's disk, so that the next start restores everything.
    pub fn forget_state(&self) -> anyhow::Result<()> {
        if self.state.exists() {
            std::fs::remove_dir_all(&self.state)?;
        }
        Ok(())
    }

    /// Deletes what the run left.
    pub fn clean_up(&self) -> anyhow::Result<()> {
        self.forget_state()?;
        let mut topics = vec![self.output.as_str(), self.changelog.as_str()];
        topics.extend(self.own_input.then_some(self.input.as_str()));
        self.cluster.delete_topics(&topics)
    }
}

/// A running contestant. Killed when dropped.
pub struct Running {
    child: Child,
    name: String,
    /// When it was started.
    pub started: Instant,
    over: bool,
}

/// CPU time by who made the threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads {
    /// Of librdkafka's threads.
    pub client: Duration,
    /// Of all others.
    pub own: Duration,
}

impl Running {
    /// Starts a process whose output goes where this one's errors go, or nowhere.
    pub fn start(name: &str, command: &mut Command, loud: bool) -> anyhow::Result<Running> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(if loud { Stdio::inherit() } else { Stdio::null() });
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("can't start {name}"))?;
        Ok(Running { child, name: name.into(), started, over: false })
    }

    /// An error if it has ended.
    pub fn alive(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                self.over = true;
                bail!("{} ended early: {status}", self.name)
            }
        }
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        // Not reaped yet, so that the id is still its; at worst it has ended already.
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// CPU time of its threads so far. librdkafka names its own.
    pub fn threads(&self) -> anyhow::Result<Threads> {
        let mut threads = Threads::default();
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let path = thread?.path();
            // A thread may end while it is looked at.
            let (Ok(name), Ok(times)) =
                (std::fs::read_to_string(path.join("comm")), std::fs::read_to_string(path.join("schedstat")))
            else {
                continue;
            };
            let on_cpu = times
                .split_whitespace()
                .next()
                .and_then(|time| time.parse().ok())
                .context("can't read a thread's time")?;
            let sum = if name.starts_with("rdk:") { &mut threads.client } else { &mut threads.own };
            *sum += Duration::from_nanos(on_cpu);
        }
        Ok(threads)
    }

    /// Bytes resident now.
    pub fn memory(&self) -> anyhow::Result<u64> {
        self.status("VmRSS:")
    }

    fn status(&self, field: &str) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line =
            status.lines().find_map(|line| line.strip_prefix(field)).context("can't read the memory")?;
        let kib: u64 = line.split_whitespace().next().unwrap_or_default().parse()?;
        Ok(kib * 1024)
    }

    /// Sends a signal, waits for the end and says what CPU time (user and system, all threads) it took.
    pub fn end(mut self, signal: Signal) -> anyhow::Result<(ExitStatus, Duration)> {
        // Of ended children the system keeps one sum; nothing else is reaped meanwhile.
        let before = children_cpu()?;
        self.signal(signal);
        let deadline = Instant::now() + Duration::from_secs(30);
        let status = loop {
            match self.child.try_wait()? {
                Some(status) => break status,
                None if Instant::now() > deadline => self.signal(Signal::SIGKILL),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        self.over = true;
        Ok((status, children_cpu()?.saturating_sub(before)))
    }
}

/// CPU time of all processes that this one started and that have ended.
pub fn children_cpu() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |time: TimeVal| Duration::from_micros(time.num_microseconds() as u64);
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
