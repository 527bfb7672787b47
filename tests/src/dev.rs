//! The runtime on a development broker in the test's own process, where any single request can be broken: one stage,
//! what it did, and that its results are exact all the same.

use flechtwerk_dev_broker::{Api, Builder, DevBroker, Fault, FaultBuilder, Held, NewTopic};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::kafka::{Write, send};
use crate::{DEADLINE, Instance, Job, Kafka, Rig, STOP, Stamp, wait_for};

/// The stage under trial: it counts words, and says which it has begun with.
const STAGE: &str = "count_aloud";

/// A stage on a broker of its own.
pub struct Trial {
    /// There is none only for a moment: [`Trial::restart`].
    broker: Option<DevBroker>,
    /// The stage and its topics.
    pub job: Job,
    /// How many words each partition has.
    written: Vec<usize>,
    /// Writes them.
    words: BaseProducer,
    /// Asks what is committed. New clients would take half a second for each question.
    group: BaseConsumer,
}

impl Trial {
    /// One partition on one node. `binary`: `env!("CARGO_BIN_EXE_rig")`.
    pub fn new(binary: &str) -> Trial {
        Trial::on(Trial::builder(), binary, 1, 1)
    }

    /// Settings of a broker.
    pub fn builder() -> Builder {
        DevBroker::builder()
    }

    /// On another broker, with more partitions, and topics on several nodes.
    pub fn on(builder: Builder, binary: &str, partitions: i32, replication: i16) -> Trial {
        let broker = builder.start().expect("a broker");
        let kafka = Kafka { brokers: broker.bootstrap() };
        let job = Job::without_topics(&kafka, binary, STAGE)
            .with(|rig| rig.arg("--commit-interval", "10ms").arg("--log", "info,flechtwerk=debug"));
        for topic in ["words", "counts"] {
            let topic = NewTopic::new(job.topic(topic), partitions).replication(replication);
            broker.create_topic(topic).expect("a topic");
        }
        let changelog = NewTopic::new(job.changelog(), partitions).config("cleanup.policy", "compact");
        broker.create_topic(changelog.replication(replication)).expect("a topic");
        let group = kafka.config().set("group.id", job.group()).set("enable.auto.commit", "false").create();
        Trial {
            broker: Some(broker),
            job,
            written: vec![0; partitions as usize],
            words: kafka.producer(),
            group: group.expect("a consumer"),
        }
    }

    /// Changes how instances are started.
    pub fn with(mut self, change: impl FnOnce(Rig) -> Rig) -> Trial {
        self.job.rig = change(self.job.rig.clone());
        self
    }

    /// Starts an instance and waits until it has a running task for each partition.
    #[track_caller]
    pub fn start(&self) -> Instance {
        let instance = self.job.rig.start();
        crate::job::wait_for_tasks(&instance, self.written.len());
        instance
    }

    /// Where faults are said.
    pub fn broker(&self) -> &DevBroker {
        self.broker.as_ref().expect("a broker")
    }

    /// Kills the broker and starts it again with these settings, which name its address and its folder.
    pub fn restart(&mut self, builder: Builder) {
        self.broker.take().expect("a broker").kill();
        self.broker = Some(builder.start().expect("a broker"));
    }

    /// The transactional id of a task.
    pub fn transactional_id(&self, partition: i32) -> String {
        format!("{}-{partition}", self.job.group())
    }

    /// The client id of every instance without an id of its own.
    pub fn client_id(&self) -> String {
        format!("{}rig", self.job.rig.namespace)
    }

    /// A fault of requests of the first task's producer.
    pub fn producer(&self, api: Api) -> FaultBuilder {
        self.broker().fault().api(api).transactional_id(self.transactional_id(0))
    }

    /// A fault of requests of any client of the instances, but not of this test.
    pub fn client(&self, api: Api) -> FaultBuilder {
        self.broker().fault().api(api).client(self.client_id())
    }

    /// How often the instances have asked for this.
    pub fn asked(&self, api: Api) -> usize {
        let client = self.client_id();
        self.broker()
            .requests()
            .count_where(|request| request.api == api && request.client_id.as_deref() == Some(&client))
    }

    /// Writes words to the first partition. Each has a value of its own.
    pub fn write(&mut self, words: usize) {
        self.write_to(0, words);
    }

    /// Writes words to a partition.
    pub fn write_to(&mut self, partition: i32, words: usize) {
        let count = &mut self.written[partition as usize];
        for index in *count..*count + words {
            let word = Write::new(&format!("word-{partition}-{}", index % 3), &value(partition, index));
            send(&self.words, self.job.topic("words"), &Write { partition: Some(partition), ..word });
        }
        *count += words;
        self.words.flush(DEADLINE).expect("flush");
    }

    /// Writes words to the first partition, and waits until they are done.
    #[track_caller]
    pub fn process(&mut self, words: usize) -> Stamp {
        self.write(words);
        self.wait_done()
    }

    /// Starts an instance, has it process words, and stops it. The results are exact.
    #[track_caller]
    pub fn process_with_another(&mut self, words: usize) {
        let mut instance = self.start();
        self.process(words);
        self.finish(&mut instance);
    }

    /// The same, and something goes wrong on the way.
    #[track_caller]
    pub fn process_with_fault(&mut self, fault: Fault, what: &str) {
        eprintln!("with a fault: {what}");
        self.process_with_another(3);
        assert!(fault.fired() > 0, "no request came to be broken: {what}");
        fault.remove();
    }

    /// Waits until all words are done; gives the stamp of the first task's last transaction.
    #[track_caller]
    pub fn wait_done(&self) -> Stamp {
        let done: Vec<Option<i64>> = self.written.iter().map(|words| Some(*words as i64)).collect();
        let mut committed = Vec::new();
        let what = format!("{done:?} are committed");
        wait_for(&what, || {
            committed = self.committed();
            committed.iter().map(|one| one.as_ref().map(|(offset, _)| *offset)).eq(done.iter().copied())
        });
        committed.swap_remove(0).map(|(_, metadata)| Stamp::parse(&metadata)).expect("a stamp")
    }

    /// What is committed for each partition, position and metadata.
    pub fn committed(&self) -> Vec<Option<(i64, String)>> {
        let mut list = TopicPartitionList::new();
        (0..).zip(&self.written).for_each(|(partition, _)| {
            list.add_partition(self.job.topic("words"), partition);
        });
        let committed = match self.group.committed_offsets(list, DEADLINE) {
            Ok(committed) => committed,
            // The coordinator may have moved.
            Err(error) => {
                eprintln!("asking for committed offsets: {error}");
                return Vec::new();
            }
        };
        let of = |one: rdkafka::topic_partition_list::TopicPartitionListElem<'_>| match one.offset() {
            Offset::Offset(offset) => Some((offset, one.metadata().to_owned())),
            _ => None,
        };
        committed.elements().into_iter().map(of).collect()
    }

    /// How often the first task's id was asked for.
    pub fn fences(&self) -> usize {
        let id = self.transactional_id(0);
        self.broker().requests().count_where(|request| {
            request.api == Api::InitProducerId && request.transactional_id.as_deref() == Some(&id)
        })
    }

    /// How often user code has begun with each word, in the order of partitions and offsets.
    pub fn calls(&self, instances: &[&Instance]) -> Vec<usize> {
        let logs: String = instances.iter().map(|instance| instance.log()).collect();
        let calls = |partition, index| logs.matches(&format!("seen {}\n", value(partition, index))).count();
        let partitions = (0..).zip(&self.written);
        partitions
            .flat_map(|(partition, words)| (0..*words).map(move |index| calls(partition, index)))
            .collect()
    }

    /// No word was computed twice: what was sent again was not computed again.
    #[track_caller]
    pub fn assert_computed_once(&self, instance: &Instance) {
        let calls = self.calls(&[instance]);
        assert!(calls.iter().all(|calls| *calls == 1), "{calls:?}; log:\n{}", instance.log());
        let starts = crate::job::logged(instance, "task is running");
        assert_eq!(starts, self.written.len(), "no task starts anew; log:\n{}", instance.log());
    }

    /// All that was written is counted once and committed: outputs, state, positions, and no transaction is open.
    #[track_caller]
    pub fn assert_exact(&self) {
        self.wait_done();
        self.job.assert_counted(self.written.iter().sum());
        let changelog = self.job.changelog();
        for topic in [self.job.topic("words"), self.job.topic("counts"), &changelog] {
            for partition in 0..self.written.len() as i32 {
                let end = self.job.kafka.watermarks(topic, partition, "read_uncommitted").1;
                let stable = self.job.kafka.watermarks(topic, partition, "read_committed").1;
                assert_eq!(stable, end, "a transaction is open in {topic}/{partition}");
            }
        }
    }

    /// Waits for the words, stops the instance in an orderly way, and looks at the results.
    #[track_caller]
    pub fn finish(&self, instance: &mut Instance) {
        self.wait_done();
        assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
        self.assert_exact();
    }
}

/// The value of a word, which no other has.
fn value(partition: i32, index: usize) -> String {
    format!("x{partition}-{index}")
}

/// Waits until a fault has hit so many requests.
#[track_caller]
pub fn wait_fired(fault: &Fault, times: u64) {
    assert!(
        fault.wait_times(times, DEADLINE),
        "only {} of {times} requests came to be broken",
        fault.fired()
    );
}

/// Waits until a request is held.
#[track_caller]
pub fn wait_held(held: &Held) {
    assert!(held.wait(DEADLINE), "no request came to be held");
}

impl Drop for Trial {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let Some(broker) = &self.broker else { return };
        let mut asked = broker.requests().all();
        asked.retain(|one| {
            ![Api::Fetch, Api::Heartbeat, Api::ListOffsets, Api::OffsetFetch].contains(&one.api)
        });
        eprintln!("--- the last requests:");
        for one in asked.iter().skip(asked.len().saturating_sub(100)) {
            let about = one.transactional_id.as_deref().or(one.group_id.as_deref()).unwrap_or_default();
            let client = one.client_id.as_deref().unwrap_or_default();
            eprintln!("{:?} node {} {} v{} {about} by {client}", one.at, one.node, one.api, one.version);
        }
    }
}
