//! A development broker that is killed while transactions are on their way, and comes back from its data folder (S3.1, S6.2a):
//! the clients go on, and each word counts once.

use std::time::Instant;

use flechtwerk_dev_broker::{Builder, DevBroker, NewTopic};
use flechtwerk_tests::job::wait_for_tasks;
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{Instance, Job, Kafka, Load, STOP, wait_for};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::TopicPartitionList;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const PARTITIONS: i32 = 4;
const KILLS: usize = 8;

/// A stage on a broker with a data folder.
struct Restarting {
    /// There is none only for a moment.
    broker: Option<DevBroker>,
    /// Starts it on its folder and its address.
    builder: Builder,
    job: Job,
    /// Asks what is committed, open transactions or not.
    group: BaseConsumer,
    /// Removed at the end.
    _folder: tempfile::TempDir,
}

impl Restarting {
    fn start(nodes: i32) -> Restarting {
        let folder = tempfile::tempdir().expect("a folder");
        let builder = DevBroker::builder().data_dir(folder.path()).nodes(nodes);
        let broker = builder.clone().start().expect("a broker");
        let builder = builder.listen(broker.address().to_string());
        // The first node's, which stays the same.
        let kafka = Kafka { brokers: broker.address().to_string() };
        let job = Job::without_topics(&kafka, RIG, "count")
            .with(|rig| rig.arg("--commit-interval", "10ms").arg("--log", "info,flechtwerk=debug"));
        let replicas = i16::try_from(nodes).expect("a few nodes");
        for topic in ["words", "counts"] {
            let topic = NewTopic::new(job.topic(topic), PARTITIONS).replication(replicas);
            broker.create_topic(topic).expect("a topic");
        }
        let changelog = NewTopic::new(job.changelog(), PARTITIONS).config("cleanup.policy", "compact");
        broker.create_topic(changelog.replication(replicas)).expect("a topic");
        let mut config = kafka.config();
        config.set("group.id", job.group()).set("isolation.level", "read_uncommitted");
        let group = config.set("reconnect.backoff.max.ms", "100").create().expect("a consumer");
        Restarting { broker: Some(broker), builder, job, group, _folder: folder }
    }

    fn broker(&self) -> &DevBroker {
        self.broker.as_ref().expect("a broker")
    }

    fn restart(&mut self) {
        self.broker.take().expect("a broker").kill();
        self.broker = Some(self.builder.clone().start().expect("the broker again"));
    }

    fn instance(&self) -> Instance {
        let instance = self.job.rig.start();
        wait_for_tasks(&instance, PARTITIONS as usize);
        instance
    }

    /// How many words are done.
    fn committed(&self) -> i64 {
        let mut list = TopicPartitionList::new();
        list.add_partition_range(self.job.topic("words"), 0, PARTITIONS - 1);
        match self.group.committed_offsets(list, STOP) {
            Ok(list) => {
                list.elements().iter().filter_map(|one| one.offset().to_raw()).map(|at| at.max(0)).sum()
            }
            // The connection went with the broker.
            Err(error) => {
                eprintln!("asking for committed offsets: {error}");
                0
            }
        }
    }

    /// Waits until all is done, stops the instance, and looks at the results.
    #[track_caller]
    fn finish(&self, mut instance: Instance, words: usize) {
        wait_for("all words are done", || self.committed() == words as i64);
        assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
        self.job.assert_counted(words);
        for topic in [self.job.topic("words"), self.job.topic("counts"), &self.job.changelog()] {
            for partition in 0..PARTITIONS {
                let [stable, end] = ["read_committed", "read_uncommitted"]
                    .map(|isolation| self.job.kafka.watermarks(topic, partition, isolation).1);
                assert_eq!(stable, end, "a transaction is open in {topic}/{partition}");
            }
        }
    }
}

#[test]
fn kills_of_the_broker_while_transactions_are_on_their_way() {
    let mut restarting = Restarting::start(1);
    let instance = restarting.instance();
    let load = Load::start(&restarting.job.kafka, restarting.job.topic("words"), 500);
    let mut before = 0;
    for kill in 0..KILLS {
        let began = Instant::now();
        wait_for("more words are done", || restarting.committed() > before + 200);
        before = restarting.committed();
        println!("kill {kill}: {before} words are done, {:?} after the last", began.elapsed());
        restarting.restart();
    }
    let words = load.finish();
    restarting.finish(instance, words);
}

/// Clients take what a broker says for outdated if its leader epochs are lower than what they have seen. Here nothing but the
/// broker's memory of them can keep them from falling: no batch has them.
#[test]
fn a_restart_after_leaders_have_moved() {
    let mut restarting = Restarting::start(2);
    for node in [2, 1] {
        restarting.broker().node_down(node).expect("a known node");
        restarting.broker().node_up(node).expect("a known node");
    }
    let instance = restarting.instance();
    restarting.restart();
    let words = (0..100).map(|index| Write {
        partition: Some(index % PARTITIONS),
        ..Write::new(&format!("word-{}-{}", index % PARTITIONS, index % 3), "x")
    });
    restarting.job.kafka.write(restarting.job.topic("words"), words);
    restarting.finish(instance, 100);
}
