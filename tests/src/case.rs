//! One stage with topics of its own: what nearly every test begins with.

use std::path::PathBuf;
use std::time::Duration;

use crate::kafka::Write;
use crate::{Instance, Kafka, Observer, Rig, wait_for};

/// Time for a clean stop, or for an instance to end after a failure.
pub const STOP: Duration = Duration::from_secs(40);

/// A stage of the rig, and its topics under unique names.
pub struct Case {
    /// The cluster.
    pub kafka: Kafka,
    /// How to start instances.
    pub rig: Rig,
    stage: String,
    topics: Vec<(String, String)>,
}

/// The metadata of a committed offset, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Random for each fence.
    pub owner: String,
    /// Number of the transaction.
    pub counter: u64,
    /// Id of the changelog topic, or `-`.
    pub changelog: String,
}

impl Stamp {
    /// Reads `{owner}:{counter}:{changelog id or -}`.
    ///
    /// # Panics
    ///
    /// If it is something else.
    #[track_caller]
    pub fn parse(text: &str) -> Stamp {
        let parts: Vec<&str> = text.split(':').collect();
        let [owner, counter, changelog] = parts[..] else { panic!("{text:?} is no stamp") };
        assert!(!owner.is_empty() && !changelog.is_empty(), "{text:?} is no stamp");
        let counter = counter.parse().unwrap_or_else(|_| panic!("{text:?} is no stamp"));
        Stamp { owner: owner.into(), counter, changelog: changelog.into() }
    }
}

impl Case {
    /// Creates the topics with this number of partitions. `binary`: `env!("CARGO_BIN_EXE_rig")`.
    pub fn new(binary: &str, stage: &str, partitions: i32, topics: &[&str]) -> Case {
        Case::on(&Kafka::from_env(), binary, stage, partitions, topics)
    }

    /// The same on another cluster.
    pub fn on(kafka: &Kafka, binary: &str, stage: &str, partitions: i32, topics: &[&str]) -> Case {
        let mut rig = Rig::new(kafka, binary).stage(stage);
        let mut named = Vec::new();
        for topic in topics {
            let name = kafka.unique(topic);
            kafka.create_topic(&name, partitions, &[]);
            rig = rig.topic(topic, &name);
            named.push(((*topic).to_owned(), name));
        }
        Case { kafka: kafka.clone(), rig, stage: stage.into(), topics: named }
    }

    /// Adds a flag with a value to the rig.
    pub fn arg(mut self, name: &str, value: &str) -> Case {
        self.rig = self.rig.arg(name, value);
        self
    }

    /// The name of a topic on the cluster.
    pub fn topic(&self, name: &str) -> &str {
        let found = self.topics.iter().find(|(one, _)| one == name);
        &found.unwrap_or_else(|| panic!("this case has no topic {name}")).1
    }

    /// The stage's application id: the name of its group, too.
    pub fn application_id(&self) -> String {
        self.rig.application_id("rig", &self.stage)
    }

    /// The name of the stage's changelog.
    pub fn changelog(&self) -> String {
        self.application_id() + "-changelog"
    }

    /// Starts an instance and waits until all tasks of these partitions run.
    #[track_caller]
    pub fn start(&self) -> Instance {
        let mut instance = self.rig.start();
        instance.wait_for_log("task is running");
        instance
    }

    /// Writes text records to partition 0 of a topic, one after another.
    pub fn write(&self, topic: &str, records: &[(&str, &str)]) {
        let records =
            records.iter().map(|(key, value)| Write { partition: Some(0), ..Write::new(key, value) });
        self.kafka.write(self.topic(topic), records);
    }

    /// Reads a topic as a user would.
    pub fn observe(&self, topic: &str) -> Observer {
        Observer::start(&self.kafka, self.topic(topic))
    }

    /// The committed offset of partition 0 of an input and its stamp, if there is one.
    pub fn committed(&self, topic: &str) -> Option<(i64, Stamp)> {
        self.committed_of(topic, 0)
    }

    /// The same of any partition.
    pub fn committed_of(&self, topic: &str, partition: i32) -> Option<(i64, Stamp)> {
        let mut all = self.kafka.committed(&self.application_id(), self.topic(topic));
        all.remove(&partition).map(|(offset, metadata)| (offset, Stamp::parse(&metadata)))
    }

    /// Waits until the position of partition 0 of an input is committed.
    #[track_caller]
    pub fn wait_committed(&self, topic: &str, offset: i64) -> Stamp {
        let mut committed = None;
        wait_for(&format!("offset {offset} of {topic} is committed"), || {
            committed = self.committed(topic);
            committed.as_ref().is_some_and(|(at, _)| *at >= offset)
        });
        let (at, stamp) = committed.expect("a committed offset");
        assert_eq!(at, offset, "the committed offset of {topic}");
        stamp
    }

    /// A gate for user code, closed.
    pub fn gate(&self, name: &str) -> Gate {
        Gate { path: self.rig.dir().join(name) }
    }

    /// Makes instances log what their consumers have fetched, for [`Instance::wait_fetched`].
    pub fn log_fetches(self) -> Case {
        self.arg("-X", "debug=fetch").arg("--log", "info,flechtwerk::kafka=debug")
    }
}

/// Holds user code back until it is opened: a record with the value [`Gate::value`].
pub struct Gate {
    path: PathBuf,
}

impl Gate {
    /// What a record must say to wait here.
    pub fn value(&self) -> String {
        format!("wait:{}", self.path.display())
    }

    /// Waits until user code has arrived here.
    #[track_caller]
    pub fn wait_arrived(&self) {
        let arrived = PathBuf::from(format!("{}.arrived", self.path.display()));
        wait_for("user code arrives at the gate", || arrived.exists());
    }

    /// Lets everybody pass.
    pub fn open(&self) {
        std::fs::write(&self.path, "").expect("open the gate");
    }
}

/// The sizes of the transactions that wrote these records: each leaves a marker behind, and so a hole.
pub fn transaction_sizes(records: &[crate::Seen]) -> Vec<usize> {
    let mut sizes: Vec<usize> = Vec::new();
    let mut next = None;
    for record in records {
        match sizes.last_mut() {
            Some(size) if next == Some(record.offset) => *size += 1,
            _ => sizes.push(1),
        }
        next = Some(record.offset + 1);
    }
    sizes
}
