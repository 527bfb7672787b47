//! The cluster that the environment names, and what tests do to it directly.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

/// Time limit of a single request.
const REQUEST: Duration = Duration::from_secs(20);

/// A running cluster.
#[derive(Clone, Debug)]
pub struct Kafka {
    /// `host:port`, comma separated.
    pub brokers: String,
}

/// One record to write.
#[derive(Clone, Debug, Default)]
pub struct Write {
    /// `None`: null.
    pub key: Option<Vec<u8>>,
    /// `None`: null.
    pub value: Option<Vec<u8>>,
    /// `None`: by the key.
    pub partition: Option<i32>,
    /// Milliseconds since the epoch; `None`: now.
    pub timestamp: Option<i64>,
    /// Name and value.
    pub headers: Vec<(String, Vec<u8>)>,
}

impl Write {
    /// A record with a key and a value.
    pub fn new(key: &str, value: &str) -> Write {
        Write { key: Some(key.into()), value: Some(value.into()), ..Write::default() }
    }
}

impl Kafka {
    /// The cluster that `FLECHTWERK_TEST_BROKERS` names.
    ///
    /// # Panics
    ///
    /// If the variable is not set.
    pub fn from_env() -> Kafka {
        let brokers = std::env::var("FLECHTWERK_TEST_BROKERS").unwrap_or_else(|_| {
            panic!(
                "these tests need a broker: run them with `make test`, or start one with `scripts/kafka start` and \
                 set FLECHTWERK_TEST_BROKERS to the address that `scripts/kafka bootstrap` prints"
            )
        });
        Kafka { brokers }
    }

    /// A name that no other test has.
    pub fn unique(&self, what: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let random: u32 = rand::random();
        format!("{what}-{random:08x}-{count}")
    }

    /// Settings of any client.
    pub fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers);
        config
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().expect("an admin client")
    }

    /// Creates a topic with one replica and waits until it is there.
    pub fn create_topic(&self, name: &str, partitions: i32, config: &[(&str, &str)]) {
        self.create_replicated(name, partitions, 1, config);
    }

    /// The same with a number of replicas.
    pub fn create_replicated(&self, name: &str, partitions: i32, replicas: i32, config: &[(&str, &str)]) {
        let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(replicas));
        for (key, value) in config {
            topic = topic.set(key, value);
        }
        let admin = self.admin();
        for result in block_on(admin.create_topics([&topic], &AdminOptions::new())).expect("create topics") {
            result.unwrap_or_else(|(name, error)| panic!("create topic {name}: {error}"));
        }
        crate::wait_for("the new topic is visible", || self.partitions(name) == partitions);
    }

    /// Deletes a topic and waits until it is gone.
    pub fn delete_topic(&self, name: &str) {
        for result in
            block_on(self.admin().delete_topics(&[name], &AdminOptions::new())).expect("delete topics")
        {
            result.unwrap_or_else(|(name, error)| panic!("delete topic {name}: {error}"));
        }
        crate::wait_for("the topic is gone", || self.partitions(name) == 0);
    }

    /// Adds partitions to a topic.
    pub fn add_partitions(&self, name: &str, total: usize) {
        let more = NewPartitions::new(name, total);
        for result in
            block_on(self.admin().create_partitions([&more], &AdminOptions::new())).expect("add partitions")
        {
            result.unwrap_or_else(|(name, error)| panic!("add partitions to {name}: {error}"));
        }
        crate::wait_for("the new partitions are visible", || self.partitions(name) == total as i32);
    }

    /// Deletes the records of a partition before `offset`.
    pub fn delete_records(&self, topic: &str, partition: i32, offset: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(offset)).expect("an offset");
        block_on(self.admin().delete_records(&list, &AdminOptions::new())).expect("delete records");
    }

    /// Number of partitions, 0 where there is no such topic.
    pub fn partitions(&self, topic: &str) -> i32 {
        let client: BaseConsumer = self.config().create().expect("a client");
        self.partitions_by(&client, topic)
    }

    /// The same, asked by this client.
    pub fn partitions_by(&self, client: &BaseConsumer, topic: &str) -> i32 {
        let metadata = client.fetch_metadata(None, REQUEST).expect("metadata");
        metadata
            .topics()
            .iter()
            .find(|one| one.name() == topic)
            .map_or(0, |one| one.partitions().len() as i32)
    }

    /// Writes records, waits until all are acknowledged.
    pub fn write(&self, topic: &str, records: impl IntoIterator<Item = Write>) {
        let producer: BaseProducer = self.producer();
        for record in records {
            send(&producer, topic, &record);
        }
        producer.flush(REQUEST).expect("flush");
    }

    /// A plain producer that partitions like the Java client.
    pub fn producer(&self) -> BaseProducer {
        self.config()
            .set("partitioner", "murmur2_random")
            .set("enable.idempotence", "true")
            .set("linger.ms", "5")
            // A test that kills brokers would wait for its own writer, up to ten seconds.
            .set("reconnect.backoff.max.ms", "500")
            .set("queue.buffering.max.messages", "1000000")
            .create()
            .expect("a producer")
    }

    /// A transactional producer that has begun a transaction.
    pub fn open_transaction(&self, transactional_id: &str) -> BaseProducer {
        let producer: BaseProducer = self
            .config()
            .set("transactional.id", transactional_id)
            .set("partitioner", "murmur2_random")
            .create()
            .expect("a producer");
        producer.init_transactions(REQUEST).expect("init transactions");
        producer.begin_transaction().expect("begin");
        producer
    }

    /// A consumer that joins no group; assign it yourself.
    pub fn consumer(&self, isolation: &str) -> BaseConsumer {
        self.config()
            .set("group.id", "flechtwerk-tests")
            .set("enable.auto.commit", "false")
            .set("isolation.level", isolation)
            .set("auto.offset.reset", "earliest")
            .set("enable.partition.eof", "true")
            // The end of a partition is seen only after this.
            .set("fetch.wait.max.ms", "50")
            .create()
            .expect("a consumer")
    }

    /// Low watermark and last stable offset (`read_committed`) or high watermark (`read_uncommitted`).
    pub fn watermarks(&self, topic: &str, partition: i32, isolation: &str) -> (i64, i64) {
        self.consumer(isolation).fetch_watermarks(topic, partition, REQUEST).expect("watermarks")
    }

    /// What a group has committed: offset and metadata by partition, for those that have an offset.
    pub fn committed(&self, group: &str, topic: &str) -> BTreeMap<i32, (i64, String)> {
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .create()
            .expect("a consumer");
        let mut list = TopicPartitionList::new();
        for partition in 0..self.partitions(topic) {
            list.add_partition(topic, partition);
        }
        let mut committed = None;
        // A young cluster is still making the topic that knows.
        crate::wait_for("the committed offsets", || {
            committed = match consumer.committed_offsets(list.clone(), REQUEST) {
                Err(KafkaError::MetadataFetch(RDKafkaErrorCode::NotCoordinator)) => None,
                result => Some(result.expect("committed offsets")),
            };
            committed.is_some()
        });
        committed
            .expect("committed offsets")
            .elements()
            .iter()
            .filter_map(|one| match one.offset() {
                Offset::Offset(offset) => Some((one.partition(), (offset, one.metadata().to_owned()))),
                _ => None,
            })
            .collect()
    }

    /// Members of a group.
    pub fn members(&self, group: &str) -> usize {
        let client: BaseConsumer = self.config().create().expect("a client");
        let mut count = None;
        // A coordinator may just be loading.
        crate::wait_for("a list of the group's members", || {
            let list = client.fetch_group_list(Some(group), REQUEST);
            count = list.ok().map(|list| list.groups().iter().map(|group| group.members().len()).sum());
            count.is_some()
        });
        count.unwrap_or_default()
    }
}

/// Queues one record, waiting where the queue is full.
pub fn send(producer: &BaseProducer, topic: &str, record: &Write) {
    loop {
        let mut message: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic);
        if let Some(key) = &record.key {
            message = message.key(key);
        }
        if let Some(value) = &record.value {
            message = message.payload(value);
        }
        if let Some(partition) = record.partition {
            message = message.partition(partition);
        }
        if let Some(timestamp) = record.timestamp {
            message = message.timestamp(timestamp);
        }
        if !record.headers.is_empty() {
            let mut headers = OwnedHeaders::new();
            for (key, value) in &record.headers {
                headers = headers.insert(Header { key, value: Some(value) });
            }
            message = message.headers(headers);
        }
        if producer.send(message).is_ok() {
            break;
        }
        producer.poll(Duration::from_millis(10));
    }
}

/// Runs a future of the client, which its own threads complete.
pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
