//! Clusters that a test has for itself, because it stops and kills their nodes.

use std::io::{Seek, Write};
use std::process::{Command, Stdio};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::kafka::block_on;
use crate::{DEADLINE, Kafka, wait_for};

/// A cluster in a folder of its own, removed when it is dropped.
pub struct Cluster {
    /// How to reach it.
    pub kafka: Kafka,
    dir: tempfile::TempDir,
}

impl Cluster {
    /// Starts one with `nodes` nodes.
    pub fn start(nodes: u32) -> Cluster {
        let dir = tempfile::tempdir().expect("a folder");
        // Made before the start, so that a failed one is cleared away as well.
        let mut cluster = Cluster { kafka: Kafka { brokers: String::new() }, dir };
        cluster.script(&["start", &nodes.to_string()]);
        cluster.kafka.brokers = cluster.script(&["bootstrap"]).trim().to_owned();
        cluster
    }

    /// `kill`, `pause`, `resume` or `restart` for one node.
    pub fn node(&self, action: &str, node: i32) {
        self.script(&[action, &node.to_string()]);
    }

    /// Creates a topic with as many replicas as there are nodes, or 1.
    pub fn create_topic(&self, name: &str, partitions: i32, replicas: i32) {
        let admin: AdminClient<DefaultClientContext> = self.kafka.config().create().expect("an admin client");
        let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(replicas));
        for result in block_on(admin.create_topics([&topic], &AdminOptions::new())).expect("create topics") {
            result.unwrap_or_else(|(name, error)| panic!("create topic {name}: {error}"));
        }
        for node in self.kafka.brokers.split(',') {
            wait_for("every node knows the new topic", || knows(node, name, partitions));
        }
    }

    /// The node that leads a partition, -1 for none.
    pub fn leader(&self, topic: &str, partition: i32) -> i32 {
        let client: BaseConsumer = self.kafka.config().create().expect("a client");
        let metadata = client.fetch_metadata(Some(topic), DEADLINE).expect("metadata");
        let topic = metadata.topics().iter().find(|one| one.name() == topic).expect("the topic");
        topic.partitions().iter().find(|one| one.id() == partition).map_or(-1, |one| one.leader())
    }

    /// Runs one of Kafka's own tools, with this on its standard input; gives what it prints.
    pub fn tool(&self, arguments: &[&str], input: &str) -> String {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(input.as_bytes()).and_then(|()| file.rewind()).expect("the input");
        self.script_with(&[&["tool"], arguments].concat(), file.into())
    }

    fn script(&self, arguments: &[&str]) -> String {
        self.script_with(arguments, Stdio::null())
    }

    fn script_with(&self, arguments: &[&str], input: Stdio) -> String {
        let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/kafka"))
            .args(arguments)
            .arg("--dir")
            .arg(self.dir.path())
            .stdin(input)
            .output()
            .expect("run scripts/kafka");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "scripts/kafka {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }
}

/// Whether the node with this address knows the topic. Another one may have answered: then that is not known yet.
fn knows(node: &str, topic: &str, partitions: i32) -> bool {
    let kafka = Kafka { brokers: node.to_owned() };
    let client: BaseConsumer = kafka.config().create().expect("a client");
    let Ok(metadata) = client.fetch_metadata(None, DEADLINE) else { return false };
    let found = metadata.topics().iter().find(|one| one.name() == topic);
    let found = found.map_or(0, |one| one.partitions().len() as i32);
    metadata.orig_broker_name().starts_with(&format!("{node}/")) && found == partitions
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.script(&["stop", "--wipe"]);
    }
}
