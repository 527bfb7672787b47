//! The brokers of a cluster that `scripts/kafka` keeps: killed and started again, one at a time, each only when all replicas are in
//! sync once more, so that what was acknowledged stays.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use flechtwerk_tests::Kafka;
use rdkafka::consumer::{BaseConsumer, Consumer};
use serde_json::json;

use crate::journal::Journal;
use crate::names::Names;
use crate::schedule::Node;

/// Until all replicas are in sync again.
const IN_SYNC: Duration = Duration::from_secs(120);
/// One request.
const REQUEST: Duration = Duration::from_secs(10);

/// The script and the folder of the cluster that it keeps.
#[derive(Clone, Debug)]
pub struct Script {
    script: String,
    /// The cluster's folder.
    pub dir: String,
}

impl Script {
    /// The one that the environment names.
    pub fn from_env() -> Option<Script> {
        let variable = |name: &str| std::env::var(name).ok();
        Some(Script {
            script: variable("FLECHTWERK_TEST_KAFKA")?,
            dir: variable("FLECHTWERK_TEST_KAFKA_DIR")?,
        })
    }

    /// Runs a command of the script, and gives what it prints.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.script);
        command.args(&arguments[..1]).args(["--dir", &self.dir]).args(&arguments[1..]);
        let output = command.output().with_context(|| format!("run {}", self.script))?;
        if !output.status.success() {
            bail!("scripts/kafka {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// I6: transactions that Kafka's own tool calls hanging, or that a coordinator says are open.
    pub fn open_transactions(&self, names: &Names, nodes: u32) -> anyhow::Result<Vec<String>> {
        let mut open = Vec::new();
        let list = self.run(&["tool", "transactions", "list"])?;
        let states = ["Ongoing", "PrepareCommit", "PrepareAbort"];
        let ongoing = |line: &&str| {
            line.starts_with(&names.namespace) && states.iter().any(|state| line.contains(state))
        };
        open.extend(list.lines().filter(ongoing).map(str::to_owned));
        for node in 1..=nodes.max(1) {
            let hanging =
                self.run(&["tool", "transactions", "find-hanging", "--broker-id", &node.to_string()])?;
            // A table whose first column is the topic.
            let ours = |line: &&str| line.split_whitespace().next().is_some_and(|topic| names.is_ours(topic));
            open.extend(hanging.lines().filter(ours).map(str::to_owned));
        }
        Ok(open)
    }
}

/// A thread that kills brokers one after the other.
pub struct Lane {
    queue: Option<mpsc::Sender<(Node, Duration)>>,
    asked: usize,
    done: Arc<AtomicUsize>,
    kills: Arc<AtomicUsize>,
    quit: Arc<AtomicBool>,
    failed: Arc<std::sync::Mutex<Option<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    /// Starts it.
    pub fn start(script: Script, kafka: &Kafka, names: &Names, nodes: u32, journal: Journal) -> Lane {
        let (queue, orders) = mpsc::channel::<(Node, Duration)>();
        let (done, kills) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let failed: Arc<std::sync::Mutex<Option<String>>> = Arc::default();
        let mut worker = Worker {
            script,
            kafka: kafka.clone(),
            names: names.clone(),
            nodes,
            journal,
            kills: kills.clone(),
        };
        let quit = Arc::new(AtomicBool::new(false));
        let stop = quit.clone();
        let (finished, failure) = (done.clone(), Arc::clone(&failed));
        let thread = std::thread::spawn(move || {
            for (node, away) in orders {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                if let Err(error) = worker.carry_out(node, away) {
                    let text = format!("{error:#}");
                    worker.journal.write("rig", json!({"error": text}));
                    *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(text);
                }
                finished.fetch_add(1, Ordering::SeqCst);
            }
        });
        Lane { queue: Some(queue), asked: 0, done, kills, quit, failed, thread: Some(thread) }
    }

    /// Orders a kill.
    pub fn order(&mut self, node: Node, away: Duration) {
        self.asked += 1;
        if let Some(queue) = &self.queue {
            let _ = queue.send((node, away));
        }
    }

    /// Orders that are not carried out yet.
    pub fn waiting(&self) -> usize {
        self.asked - self.done.load(Ordering::SeqCst)
    }

    /// Brokers killed so far.
    pub fn kills(&self) -> usize {
        self.kills.load(Ordering::SeqCst)
    }

    /// What went wrong with the cluster itself.
    pub fn failure(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // What is under way is finished, so that all brokers run.
        self.quit.store(true, Ordering::SeqCst);
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    script: Script,
    kafka: Kafka,
    names: Names,
    nodes: u32,
    journal: Journal,
    kills: Arc<AtomicUsize>,
}

impl Worker {
    fn carry_out(&mut self, node: Node, away: Duration) -> anyhow::Result<()> {
        let last = &self.names.stages[1];
        let nodes: Vec<i32> = match node {
            Node::Number(number) => vec![number as i32 + 1],
            Node::GroupCoordinator => vec![self.coordinator(crate::offsets::TOPIC, &last.group)?],
            Node::TransactionCoordinator(partition) => {
                vec![self.coordinator("__transaction_state", &format!("{}-{partition}", last.group))?]
            }
            Node::Rolling => (1..=self.nodes as i32).collect(),
        };
        for number in nodes {
            self.journal.write("broker_kill", json!({"node": number, "why": node}));
            self.script.run(&["kill", &number.to_string()])?;
            self.kills.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(away);
            self.script.run(&["restart", &number.to_string()])?;
            self.journal.write("broker_back", json!({"node": number}));
            self.wait_in_sync()?;
            self.journal.write("in_sync", json!({"node": number}));
        }
        Ok(())
    }

    /// The node that leads the partition of a coordinator's topic in which the name lies.
    fn coordinator(&self, topic: &str, name: &str) -> anyhow::Result<i32> {
        let client: BaseConsumer = self.kafka.config().create()?;
        let metadata = client.fetch_metadata(Some(topic), REQUEST)?;
        let topic = metadata.topics().first().context("the coordinator's topic")?;
        let number = java_hash(name) % topic.partitions().len().max(1) as i32;
        let partition = topic.partitions().iter().find(|one| one.id() == number);
        let leader = partition.map(|one| one.leader()).filter(|leader| *leader > 0);
        leader.context("the coordinator's partition has no leader")
    }

    fn wait_in_sync(&self) -> anyhow::Result<()> {
        let client: BaseConsumer = self.kafka.config().create()?;
        let until = Instant::now() + IN_SYNC;
        loop {
            let missing = client.fetch_metadata(None, REQUEST).map(|metadata| {
                let partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
                partitions.filter(|one| one.isr().len() < one.replicas().len() || one.leader() < 0).count()
            });
            match missing {
                Ok(0) => return Ok(()),
                _ if Instant::now() > until => bail!("replicas are not in sync again: {missing:?}"),
                _ => std::thread::sleep(Duration::from_millis(300)),
            }
        }
    }
}

/// How Kafka's coordinators spread names over partitions.
fn java_hash(name: &str) -> i32 {
    name.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
        & i32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spread_as_java_does() {
        assert_eq!(java_hash("hello"), 99_162_322);
        assert_eq!(java_hash("my-consumer-group"), 1_513_705_513);
    }
}
