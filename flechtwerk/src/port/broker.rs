//! The ports to the cluster: transactional producer, group membership, readers of partitions, administration.
//!
//! Methods block and are called from threads of their own, never from async code, unless they say otherwise.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::format::ChangelogRecord;
use crate::glue::{Outputs, RawRecord};

/// What may be done about an error (S6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The same call again.
    Retriable,
    /// The time limit of the call passed; the same call again.
    TimedOut,
    /// Abort the transaction; then the batch may be sent again.
    Abortable,
    /// The group moved on (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS): abort, and it is no
    /// failure of the batch.
    Generation,
    /// Another process took this `group.instance.id`.
    FencedInstance,
    /// Another producer took this transactional id, or the broker timed the transaction out.
    Fenced,
    /// The client is unusable; make a new one.
    Fatal,
    /// Repeating can't mend it: too large, invalid, not authorized, policy.
    Hopeless,
}

/// An answer that is not success.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text} ({code})")]
pub struct BrokerError {
    pub kind: ErrorKind,
    /// Kafka's or librdkafka's name of the error.
    pub code: String,
    pub text: String,
    /// For a failed output: its index in [`Outputs::records`].
    pub output: Option<usize>,
    /// For a failed output or changelog record: bytes of key and value.
    pub size: Option<usize>,
}

impl BrokerError {
    /// A topic is not known to the broker: it is deleted, or it is new and not every broker knows it yet.
    pub fn is_unknown_topic(&self) -> bool {
        ["UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"]
            .contains(&self.code.as_str())
    }
}

/// A topic's partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    pub topic: Arc<str>,
    pub partition: i32,
}

/// `words/3`, as all messages write it; a place in it is `words/3 offset 17`.
impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}

/// An input position to commit, with the stamp as metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommit {
    pub at: TopicPartition,
    pub offset: i64,
    pub metadata: String,
}

/// What the group has committed for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub at: TopicPartition,
    /// `None`: nothing was ever committed (or it expired).
    pub offset: Option<i64>,
    /// The metadata beside it; empty where there is none.
    pub metadata: String,
}

/// What is known of a producer's requests that were sent and never answered (S3.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// TxnOffsetCommit or EndTxn requests sent and lost, ever, on this producer.
    pub lost_txn: u32,
    /// TxnOffsetCommit or EndTxn requests sent and not answered at this moment.
    pub open_txn: u32,
    /// The same for Produce: lost ever.
    pub lost_produce: u32,
    /// Produce requests sent and not answered at this moment.
    pub open_produce: u32,
    /// EndTxn requests ever sent.
    pub sent_end_txn: u32,
}

/// A transactional producer with a static id. Used by one thread. Dropping it must not block for long and
/// leaves an open transaction for the next fence.
pub trait Producer: Send {
    /// One attempt at `InitProducerId`, at most `limit` long.
    fn fence(&mut self, limit: Duration) -> Result<(), BrokerError>;
    /// Begins a transaction; sends nothing.
    fn begin(&mut self) -> Result<(), BrokerError>;
    /// Queues all outputs; drains and repeats when the queue is full.
    fn produce(&mut self, outputs: &Outputs, topics: &[Arc<str>]) -> Result<(), BrokerError>;
    /// Queues changelog records, all to one partition of one topic.
    fn produce_changelog(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        changes: &[ChangelogRecord],
    ) -> Result<(), BrokerError>;
    /// Adds the input positions to the transaction with the group metadata read afresh.
    fn send_offsets(
        &mut self,
        offsets: &[OffsetCommit],
        group: &dyn Group,
        limit: Duration,
    ) -> Result<(), BrokerError>;
    /// One slice of the commit: `TimedOut` or `Retriable` means the same call again.
    fn commit(&mut self, slice: Duration) -> Result<(), BrokerError>;
    /// Aborts, in slices, draining events between them, at most `limit` long.
    fn abort(&mut self, limit: Duration) -> Result<(), BrokerError>;
    /// The first delivery error of the running transaction, if there was one.
    fn delivery_error(&mut self) -> Option<BrokerError>;
    /// What was sent and never answered.
    fn unanswered(&self) -> Unanswered;
    /// Serves logs and events of an idle producer; never blocks.
    fn serve(&mut self);
}

/// Makes producers, warm: ready to fence without the cold-start timers of the client.
pub trait ProducerFactory: Send + Sync {
    /// A new producer with this transactional id; `warm_up` is a topic to ask metadata for.
    fn create(&self, transactional_id: &str, warm_up: &str) -> Result<Box<dyn Producer>, BrokerError>;
}

/// What happens to the membership.
#[derive(Clone, Debug)]
pub enum GroupEvent {
    /// The assignment is now exactly this.
    Assigned(Vec<TopicPartition>),
    /// The group rebalances; what was assigned stays with us until the next assignment says otherwise.
    Revoked,
    /// The session expired: what was assigned is gone at once.
    Lost,
    /// A topic of the subscription is not known to the broker. It may be for a moment only.
    UnknownTopic,
    /// The member can't go on: the client is fatal, or (kind `FencedInstance`) its id was taken.
    Failed(BrokerError),
}

/// The membership of one stage in its consumer group. Polls on its own thread. Shared by all threads.
pub trait Group: Send + Sync {
    /// The committed offsets and their metadata, stable ones only: while they are unstable this answers
    /// `Retriable` or `TimedOut`.
    fn committed(
        &self,
        partitions: &[TopicPartition],
        limit: Duration,
    ) -> Result<Vec<Committed>, BrokerError>;
    /// What all members of the group subscribe to, this one included, by who they are.
    fn subscriptions(&self, limit: Duration) -> Result<Vec<(String, Vec<String>)>, BrokerError>;
    /// Opaque: the adapter's own producer reads the metadata from it.
    fn as_any(&self) -> &dyn std::any::Any;
    /// Leaves the group (a static member too, unless `stay`) and stops polling; at most `limit` long.
    fn leave(&self, stay: bool, limit: Duration) -> Result<(), BrokerError>;
}

/// Offsets of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    pub low: i64,
    /// The last stable offset: where a read_committed reader ends.
    pub stable: i64,
    pub high: i64,
}

/// A topic as a broker knows it at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicNow {
    /// Kafka's topic id, as in [`TopicDescription::id`].
    pub id: String,
    pub partitions: i32,
}

/// Called (from a thread of the client) when a queue that was empty has something.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Reads partitions at explicit offsets, read_committed, without joining any group. Shared by all tasks of a
/// stage instance; partitions come and go one by one without disturbing each other.
pub trait Reader: Send + Sync {
    /// Starts reading at `offset`. `input` is copied into the records. `wake` may be called at any time.
    fn open(
        &self,
        at: &TopicPartition,
        input: u16,
        offset: i64,
        wake: Wake,
    ) -> Result<Box<dyn Queue>, BrokerError>;
    /// Low watermark, last stable offset and high watermark, asked of the broker.
    fn watermarks(&self, at: &TopicPartition, limit: Duration) -> Result<Watermarks, BrokerError>;
    /// What a broker knows of a topic; `Retriable` where there is no such topic, since a broker may learn of a new one late.
    fn topic(&self, topic: &Arc<str>, limit: Duration) -> Result<TopicNow, BrokerError>;
    /// Its id alone.
    fn topic_id(&self, topic: &Arc<str>, limit: Duration) -> Result<String, BrokerError> {
        self.topic(topic, limit).map(|now| now.id)
    }
    /// Connects to the brokers of these topics ahead of need.
    fn warm_up(&self, topics: &[Arc<str>], limit: Duration);
}

/// What one call of [`Queue::take`] got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Records appended.
    pub records: usize,
    /// Bytes of their keys and values.
    pub bytes: usize,
    /// Offset of the last end-of-partition event seen: where the reader's view ends now. It equals the last
    /// stable offset and may lie behind aborted records and markers.
    pub end: Option<i64>,
}

/// One partition being read. Dropping it stops the reading.
pub trait Queue: Send {
    /// Takes what is there, at most `max` records and about `max_bytes`; never blocks; callable from async code. A topic that a
    /// broker does not know is no error here: the reading goes on by itself where it is known again, and whoever must hear that
    /// it is gone has to ask.
    fn take(&mut self, max: usize, max_bytes: usize, into: &mut Vec<RawRecord>)
    -> Result<Taken, BrokerError>;
    /// Records waiting, roughly.
    #[cfg(all(test, feature = "broker-tests"))]
    fn waiting(&self) -> usize;
}

/// A topic as the cluster has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDescription {
    pub partitions: i32,
    /// Kafka's topic id, as 22 characters of unpadded URL-safe base64; changes when the topic is made anew.
    pub id: String,
    /// Value of `cleanup.policy`, sorted, comma separated.
    pub cleanup_policy: String,
    /// `max.message.bytes`.
    pub max_message_bytes: Option<u64>,
}

/// A topic to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    pub name: Arc<str>,
    pub partitions: i32,
    /// -1: the broker's default.
    pub replication_factor: i32,
    pub config: BTreeMap<String, String>,
}

/// The outcome for each of several topics.
pub type PerTopic = Vec<(Arc<str>, Result<(), BrokerError>)>;

/// Which committed offsets a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// Those that no open transaction is about to replace: the question waits for them (KIP-447).
    Stable,
    /// The last that are committed, whatever an open transaction may do next.
    Any,
}

/// Administration of the cluster.
pub trait Cluster: Send + Sync {
    /// Number of brokers; the cheapest question that shows that the cluster answers.
    fn brokers(&self, limit: Duration) -> Result<usize, BrokerError>;
    /// Describes the topics that exist; those that don't are absent from the answer.
    fn topics(
        &self,
        names: &[Arc<str>],
        limit: Duration,
    ) -> Result<BTreeMap<Arc<str>, TopicDescription>, BrokerError>;
    /// Creates topics and waits until they are visible. A topic that exists is `Ok`.
    fn create_topics(&self, topics: &[NewTopic], limit: Duration) -> Result<PerTopic, BrokerError>;
    /// Deletes topics and waits until they are gone.
    fn delete_topics(&self, names: &[Arc<str>], limit: Duration) -> Result<(), BrokerError>;
    /// Number of members of a group that are alive; 0 where there is no such group.
    fn group_members(&self, group: &str, limit: Duration) -> Result<usize, BrokerError>;
    /// Committed offsets of any group.
    fn committed(
        &self,
        group: &str,
        partitions: &[TopicPartition],
        which: Stability,
        limit: Duration,
    ) -> Result<Vec<Committed>, BrokerError>;
    /// Commits offsets to a group nobody is a member of.
    fn commit(&self, group: &str, offsets: &[OffsetCommit], limit: Duration) -> Result<(), BrokerError>;
    /// The earliest offset whose record has a timestamp of at least `millis`, or the end.
    fn offset_for_time(&self, at: &TopicPartition, millis: i64, limit: Duration) -> Result<i64, BrokerError>;
    /// Low watermark, last stable offset and high watermark.
    fn watermarks(&self, at: &TopicPartition, limit: Duration) -> Result<Watermarks, BrokerError>;
}

/// What a [`Reader`] is for: how much it fetches ahead, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderKind {
    /// Inputs, for as long as the task lives.
    Inputs {
        /// Records come with their headers.
        headers: bool,
    },
    /// Changelogs, as fast as possible and then no more; their records come without headers.
    Changelogs,
    /// Tables, as fast as possible and then for as long as the process lives.
    Tables,
}

impl ReaderKind {
    /// Records come with their headers.
    pub fn headers(self) -> bool {
        match self {
            ReaderKind::Inputs { headers } => headers,
            ReaderKind::Changelogs => false,
            ReaderKind::Tables => true,
        }
    }
}

/// Makes the clients of a stage instance.
pub trait Clients: Send + Sync {
    /// Joins the consumer group and subscribes; events arrive on the membership's own thread, which they must
    /// not hold up.
    fn join(
        &self,
        application_id: &str,
        topics: &[Arc<str>],
        events: Box<dyn Fn(GroupEvent) + Send + Sync>,
    ) -> Result<Arc<dyn Group>, BrokerError>;
    /// A reader; it never joins the group whose name it bears.
    fn reader(&self, application_id: &str, kind: ReaderKind) -> Result<Arc<dyn Reader>, BrokerError>;
    /// Makes transactional producers.
    fn producers(&self) -> Arc<dyn ProducerFactory>;
}
