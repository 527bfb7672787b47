//! One stage, what was written to it, and whether its results are exact: what tests with faults begin and end with, whatever
//! breaks the requests.

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::kafka::{Write, send};
use crate::{DEADLINE, Instance, Job, Kafka, Rig, STOP, Stamp, wait_for};

/// The stage under trial: it counts words, and says which it has begun with.
const STAGE: &str = "count_aloud";

/// A stage under trial.
pub struct Subject {
    /// The stage and its topics.
    pub job: Job,
    /// How many words each partition has.
    written: Vec<usize>,
    /// Writes them.
    words: BaseProducer,
    /// Asks what is committed. New clients would take half a second for each question.
    group: BaseConsumer,
}

impl Subject {
    /// A stage with that many partitions, whose topics are yet to be made. `binary`: `env!("CARGO_BIN_EXE_rig")`.
    pub fn without_topics(kafka: &Kafka, binary: &str, partitions: i32) -> Subject {
        let job = Job::without_topics(kafka, binary, STAGE)
            .with(|rig| rig.arg("--commit-interval", "10ms").arg("--log", "info,flechtwerk=debug"));
        let group = kafka.config().set("group.id", job.group()).set("enable.auto.commit", "false").create();
        Subject {
            job,
            written: vec![0; partitions as usize],
            words: kafka.producer(),
            group: group.expect("a consumer"),
        }
    }

    /// Changes how instances are started.
    pub fn set(&mut self, change: impl FnOnce(Rig) -> Rig) {
        self.job.rig = change(self.job.rig.clone());
    }

    /// Starts an instance and waits until it has a running task for each partition.
    #[track_caller]
    pub fn start(&self) -> Instance {
        let instance = self.job.rig.start();
        crate::job::wait_for_tasks(&instance, self.written.len());
        instance
    }

    /// The transactional id of a task.
    pub fn transactional_id(&self, partition: i32) -> String {
        format!("{}-{partition}", self.job.group())
    }

    /// The client id of every instance without an id of its own.
    pub fn client_id(&self) -> String {
        format!("{}rig", self.job.rig.namespace)
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
