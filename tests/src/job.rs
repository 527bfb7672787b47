//! One stage of the rig on topics of its own, and what operators do to it: tools, committed offsets, exact results.

use std::collections::{BTreeMap, HashMap};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::Message;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Headers;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::kafka::{Write, block_on, send};
use crate::{DEADLINE, Instance, Kafka, Observer, Rig, Seen, wait_for};

/// The name of the rig's pipeline.
const PIPELINE: &str = "rig";

/// A stage with topics that nobody else uses.
pub struct Job {
    /// Where it runs.
    pub kafka: Kafka,
    /// Starts its instances.
    pub rig: Rig,
    stage: &'static str,
    binary: String,
    topics: BTreeMap<&'static str, String>,
}

/// Inputs and outputs of the stages that jobs are made of.
fn topics_of(stage: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match stage {
        "count" | "count_aloud" => (&["words"], &["counts"]),
        "obey" | "aloud" => (&["words"], &["joined"]),
        "join" => (&["profiles", "words"], &["joined"]),
        "copy" => (&["raw"], &["copies"]),
        other => panic!("no job is made of stage {other}"),
    }
}

impl Job {
    /// A job whose topics exist. `binary`: `env!("CARGO_BIN_EXE_rig")`.
    pub fn new(kafka: &Kafka, binary: &str, stage: &'static str, partitions: i32) -> Job {
        let job = Job::without_topics(kafka, binary, stage);
        for topic in job.topics.values() {
            kafka.create_topic(topic, partitions, &[]);
        }
        job
    }

    /// A job whose topics are yet to be made.
    pub fn without_topics(kafka: &Kafka, binary: &str, stage: &'static str) -> Job {
        let (inputs, outputs) = topics_of(stage);
        let topics: BTreeMap<&'static str, String> =
            inputs.iter().chain(outputs).map(|name| (*name, kafka.unique(name))).collect();
        let mut rig = Rig::new(kafka, binary).stage(stage);
        for (name, topic) in &topics {
            rig = rig.topic(name, topic);
        }
        Job { kafka: kafka.clone(), rig, stage, binary: binary.into(), topics }
    }

    /// The same stage in a namespace of its own: it reads the same inputs, and writes outputs of its own.
    pub fn beside(&self, partitions: i32) -> Job {
        let mut job = Job::without_topics(&self.kafka, &self.binary, self.stage);
        let (inputs, outputs) = topics_of(self.stage);
        let mut rig = Rig::new(&self.kafka, &self.binary).stage(self.stage);
        for input in inputs {
            job.topics.insert(input, self.topic(input).to_owned());
        }
        for output in outputs {
            self.kafka.create_topic(job.topic(output), partitions, &[]);
        }
        for (name, topic) in &job.topics {
            rig = rig.topic(name, topic);
        }
        Job { rig, ..job }
    }

    /// Changes how instances are started.
    pub fn with(mut self, change: impl FnOnce(Rig) -> Rig) -> Job {
        self.rig = change(self.rig);
        self
    }

    /// The cluster's name of one of its topics.
    pub fn topic(&self, name: &str) -> &str {
        &self.topics[name]
    }

    /// Its consumer group, which is its application id.
    pub fn group(&self) -> String {
        self.rig.application_id(PIPELINE, self.stage)
    }

    /// The topic of its state.
    pub fn changelog(&self) -> String {
        self.group() + "-changelog"
    }

    /// Committed offset and metadata by partition of an input.
    pub fn committed(&self, input: &str) -> BTreeMap<i32, (i64, String)> {
        self.kafka.committed(&self.group(), self.topic(input))
    }

    /// The committed offsets alone.
    pub fn offsets(&self, input: &str) -> BTreeMap<i32, i64> {
        self.committed(input).into_iter().map(|(partition, (offset, _))| (partition, offset)).collect()
    }

    /// Writes records with one key to a partition of an input.
    pub fn write(&self, input: &str, partition: i32, key: &str, values: &[&str]) {
        let records =
            values.iter().map(|value| Write { partition: Some(partition), ..Write::new(key, value) });
        self.kafka.write(self.topic(input), records);
    }

    /// Waits until the committed offset of a partition is this one.
    #[track_caller]
    pub fn wait_for_offset(&self, input: &str, partition: i32, offset: i64) {
        let what = format!("{input}/{partition} is committed at {offset}");
        wait_for(&what, || self.offsets(input).get(&partition) == Some(&offset));
    }

    /// Runs another command of the binary on this stage; gives status, stdout and stderr.
    pub fn tool(&self, arguments: &[&str]) -> (i32, String, String) {
        self.tool_command(arguments).output().map(answer).expect("run the binary")
    }

    /// The same, not started yet.
    pub fn tool_command(&self, arguments: &[&str]) -> Command {
        let mut command = program(&self.binary, arguments);
        command.args(["--bootstrap-servers", &self.kafka.brokers, "--namespace", &self.rig.namespace]);
        command.args(["--stage", self.stage]);
        for (name, topic) in &self.topics {
            command.args(["--topic", &format!("{name}={topic}")]);
        }
        command
    }

    /// Reads words and counts to their ends and compares them: each word has one count, in order for each key.
    #[track_caller]
    pub fn assert_counted(&self, records: usize) {
        let (mut expected, mut model) = (BTreeMap::new(), HashMap::<String, u64>::new());
        let words = read_all(&self.kafka, self.topic("words"));
        assert_eq!(words.len(), records, "the input is not what was written");
        for word in words {
            let count = model.entry(word.key_text()).or_default();
            *count += 1;
            expected.insert(format!("{}:{}", word.partition, word.offset), (word.key_text(), *count));
        }
        let mut last: HashMap<String, u64> = HashMap::new();
        for count in read_all(&self.kafka, self.topic("counts")) {
            let at = count.header("at").expect("the header `at`");
            let made = (count.key_text(), count.value_text().parse().expect("a count"));
            let before = last.insert(made.0.clone(), made.1).unwrap_or(0);
            assert_eq!(before + 1, made.1, "the counts of {} are out of order", made.0);
            assert_eq!(expected.remove(&at), Some(made), "the count of the word at {at}, or a second one");
        }
        assert!(expected.is_empty(), "{} words have no count", expected.len());
        assert_eq!(self.state(), model, "the state in the changelog");
    }

    /// Counts by word, as the changelog has them.
    pub fn state(&self) -> HashMap<String, u64> {
        let mut state = HashMap::new();
        for record in read_all(&self.kafka, &self.changelog()) {
            let key = String::from_utf8_lossy(&record.key.expect("a key")[1..]).into_owned();
            match record.value {
                None => drop(state.remove(&key)),
                Some(value) => {
                    let value: serde_json::Value = serde_json::from_slice(&value[1..]).expect("JSON");
                    state.insert(key, value["n"].as_u64().expect("a count"));
                }
            }
        }
        state
    }

    /// Watches its output.
    pub fn observe(&self) -> Observer {
        let output = topics_of(self.stage).1[0];
        Observer::start(&self.kafka, self.topic(output))
    }
}

/// The binary with arguments and without settings in its environment.
pub fn program(binary: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FLECHTWERK_")) {
        command.env_remove(name);
    }
    command
}

/// Status, stdout and stderr.
pub fn answer(output: std::process::Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Every committed record of a topic, up to the ends of its partitions.
pub fn read_all(kafka: &Kafka, topic: &str) -> Vec<Seen> {
    let consumer = kafka.consumer("read_committed");
    let mut list = TopicPartitionList::new();
    // By the same client: one that knows nothing of a topic when it is told to read it takes half a second longer.
    let partitions = kafka.partitions_by(&consumer, topic);
    for partition in 0..partitions {
        list.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
    }
    consumer.assign(&list).expect("assign");
    let (mut seen, mut ended) = (Vec::new(), std::collections::BTreeSet::new());
    wait_for(&format!("the ends of {topic}"), || {
        while let Some(result) = consumer.poll(Duration::from_millis(50)) {
            match result {
                Ok(message) => seen.push(Seen {
                    partition: message.partition(),
                    offset: message.offset(),
                    timestamp: message.timestamp().to_millis().unwrap_or(-1),
                    key: message.key().map(<[u8]>::to_vec),
                    value: message.payload().map(<[u8]>::to_vec),
                    headers: message.headers().map_or_else(Vec::new, |headers| {
                        let owned = |value: Option<&[u8]>| value.map(<[u8]>::to_vec);
                        headers.iter().map(|header| (header.key.into(), owned(header.value))).collect()
                    }),
                }),
                Err(KafkaError::PartitionEOF(partition)) => drop(ended.insert(partition)),
                Err(error) => eprintln!("reading {topic}: {error}"),
            }
        }
        ended.len() == partitions as usize
    });
    seen
}

/// Commits offsets, with metadata, for a group without members.
pub fn commit(kafka: &Kafka, group: &str, topic: &str, offsets: &[(i32, i64, &str)]) {
    let consumer: BaseConsumer = kafka
        .config()
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    for (partition, offset, metadata) in offsets {
        let mut one = list.add_partition(topic, *partition);
        one.set_offset(Offset::Offset(*offset)).expect("an offset");
        one.set_metadata(*metadata);
    }
    consumer.commit(&list, CommitMode::Sync).expect("commit");
}

/// Deletes a group with everything that it has committed.
pub fn delete_group(kafka: &Kafka, group: &str) {
    let admin: AdminClient<DefaultClientContext> = kafka.config().create().expect("an admin client");
    for result in block_on(admin.delete_groups(&[group], &AdminOptions::new())).expect("delete groups") {
        result.unwrap_or_else(|(name, error)| panic!("delete group {name}: {error}"));
    }
}

/// Number of times that `text` stands in an instance's log.
pub fn logged(instance: &Instance, text: &str) -> usize {
    instance.log().matches(text).count()
}

/// Waits until an instance says that it was assigned exactly these partitions, after the first `skip` bytes of its
/// log.
#[track_caller]
pub fn wait_for_assignment(instance: &Instance, skip: usize, partitions: &str) {
    let text = format!("partitions={{{partitions}}}");
    let what = format!("an assignment of {{{partitions}}} in the log:\n{}", instance.log());
    wait_for(&what, || instance.log().get(skip..).is_some_and(|log| log.contains(&text)));
}

/// Waits until as many tasks have begun to run as are named, one log line each.
#[track_caller]
pub fn wait_for_tasks(instance: &Instance, tasks: usize) {
    wait_for(&format!("{tasks} running tasks"), || logged(instance, "task is running") >= tasks);
}

/// Writes words, as long as it is wanted.
pub struct Load {
    quit: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Load {
    /// `rate` words a second, of 50 different ones.
    pub fn start(kafka: &Kafka, topic: &str, rate: u32) -> Load {
        let (quit, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (producer, topic) = (kafka.producer(), topic.to_owned());
        let (stop, count) = (quit.clone(), written.clone());
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            while !stop.load(Ordering::SeqCst) {
                let index = count.fetch_add(1, Ordering::SeqCst);
                send(&producer, &topic, &Write::new(&format!("word-{}", index % 50), "x"));
                producer.poll(Duration::ZERO);
                let due = began + Duration::from_secs_f64((index + 1) as f64 / f64::from(rate));
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            rdkafka::producer::Producer::flush(&producer, DEADLINE).expect("flush");
        });
        Load { quit, written, thread }
    }

    /// Words so far.
    pub fn written(&self) -> usize {
        self.written.load(Ordering::SeqCst)
    }

    /// Ends it; gives the number of words, all of them acknowledged.
    pub fn finish(self) -> usize {
        self.quit.store(true, Ordering::SeqCst);
        self.thread.join().expect("the writer");
        self.written.load(Ordering::SeqCst)
    }
}
