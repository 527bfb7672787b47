//! The topics: creating, deleting and growing them, and the partitions with their leaders.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::Notify;
use uuid::Uuid;

use super::config::{self, TopicConfigs};
use super::nodes::Nodes;
use super::{NewTopic, Refusal};
use crate::ErrorCode;
use crate::log::PartitionLog;
use crate::storage::{Storage, StorageError, TopicMeta};

/// The most partitions that one request may create, as in Apache Kafka.
pub(crate) const MAX_NEW_PARTITIONS: i32 = 10_000;
/// In the place of a leader epoch: the client doesn't know.
const NO_EPOCH: i32 = -1;
/// Under this name a topic's replication factor is kept among its settings. No setting of Kafka has a space.
const REPLICATION: &str = "replication factor";

/// One partition.
pub(crate) struct Partition {
    pub(crate) log: PartitionLog,
    /// The nodes that hold it, the preferred leader first.
    pub(crate) replicas: Vec<i32>,
    /// The node that leads it, if one of them is up.
    pub(crate) leader: Option<i32>,
    /// Fetches that wait for more.
    waiting: Vec<Arc<Notify>>,
}

impl Partition {
    fn new(log: PartitionLog, replicas: Vec<i32>, nodes: &Nodes) -> Partition {
        let leader = replicas.iter().copied().find(|id| nodes.is_up(*id));
        Partition { log, replicas, leader, waiting: Vec::new() }
    }

    /// Has a fetch woken by the next change. Those that have given up are forgotten here.
    pub(crate) fn wait(&mut self, fetch: &Arc<Notify>) {
        self.waiting.retain(|waiting| Arc::strong_count(waiting) > 1);
        if !self.waiting.iter().any(|waiting| Arc::ptr_eq(waiting, fetch)) {
            self.waiting.push(Arc::clone(fetch));
        }
    }

    /// Something changed that a waiting fetch may want to see.
    pub(crate) fn wake(&mut self) {
        for fetch in self.waiting.drain(..) {
            fetch.notify_one();
        }
    }

    /// Chooses a leader again after a node went down or came up.
    fn elect(&mut self, nodes: &Nodes) {
        if self.leader.is_some_and(|id| nodes.is_up(id)) {
            return;
        }
        let leader = self.replicas.iter().copied().find(|id| nodes.is_up(*id));
        if leader.is_some() {
            self.log.set_leader_epoch(self.log.leader_epoch().saturating_add(1));
        }
        self.leader = leader;
        self.wake();
    }
}

/// One topic.
pub(crate) struct Topic {
    pub(crate) id: Uuid,
    pub(crate) replication: i16,
    pub(crate) configs: TopicConfigs,
    pub(crate) partitions: Vec<Partition>,
}

impl Topic {
    pub(crate) fn partition_count(&self) -> i32 {
        i32::try_from(self.partitions.len()).unwrap_or(i32::MAX)
    }

    /// Whether the log is cleaned by compaction.
    pub(crate) fn compacted(&self) -> bool {
        config::log_config(&self.configs).compact
    }

    fn meta(&self, name: &str) -> TopicMeta {
        let mut configs: Vec<(String, String)> =
            self.configs.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        configs.push((REPLICATION.to_owned(), self.replication.to_string()));
        configs.sort();
        TopicMeta { name: name.to_owned(), id: self.id, partitions: self.partition_count(), configs }
    }
}

/// All topics by name.
#[derive(Default)]
pub(crate) struct Topics {
    by_name: BTreeMap<String, Topic>,
    /// The same names as Kafka's metrics write them.
    by_metric: HashMap<String, String>,
}

impl Topics {
    /// What the storage kept. As after any election, each partition has a leader epoch that it has never had before: clients
    /// ignore what a broker with an older one says about a leader.
    pub(crate) fn restore(storage: &mut Storage, nodes: &Nodes) -> Result<Topics, StorageError> {
        let mut topics = Topics::default();
        for meta in storage.topics() {
            let mut configs: TopicConfigs = meta.configs.into_iter().collect();
            let replication = configs.remove(REPLICATION).and_then(|value| value.parse().ok()).unwrap_or(1);
            let mut topic = Topic { id: meta.id, replication, configs, partitions: Vec::new() };
            grow(storage, nodes, &meta.name, &mut topic, meta.partitions)?;
            topics.insert(&meta.name, topic);
        }
        if !topics.by_name.is_empty() {
            let epoch = topics.highest_leader_epoch().max(storage.leader_epoch()).saturating_add(1);
            storage.keep_leader_epoch(epoch)?;
            topics.partitions_mut().for_each(|partition| partition.log.set_leader_epoch(epoch));
        }
        Ok(topics)
    }

    fn insert(&mut self, name: &str, topic: Topic) -> &Topic {
        self.by_metric.insert(in_metrics(name), name.to_owned());
        self.by_name.entry(name.to_owned()).or_insert(topic)
    }

    fn partitions_mut(&mut self) -> impl Iterator<Item = &mut Partition> {
        self.by_name.values_mut().flat_map(|topic| &mut topic.partitions)
    }

    fn highest_leader_epoch(&self) -> i32 {
        let partitions = self.by_name.values().flat_map(|topic| &topic.partitions);
        partitions.map(|partition| partition.log.leader_epoch()).max().unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Topic)> {
        self.by_name.iter().map(|(name, topic)| (name.as_str(), topic))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Topic> {
        self.by_name.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Topic> {
        self.by_name.get_mut(name)
    }

    pub(crate) fn name_of(&self, id: Uuid) -> Option<&str> {
        self.iter().find(|(_, topic)| topic.id == id).map(|(name, _)| name)
    }

    pub(crate) fn partition(&self, name: &str, partition: i32) -> Option<&Partition> {
        self.by_name.get(name)?.partitions.get(usize::try_from(partition).ok()?)
    }

    pub(crate) fn partition_mut(&mut self, name: &str, partition: i32) -> Option<&mut Partition> {
        self.by_name.get_mut(name)?.partitions.get_mut(usize::try_from(partition).ok()?)
    }

    /// The partition for a request that only its leader may serve.
    pub(crate) fn led_by(
        &mut self,
        node: i32,
        name: &str,
        partition: i32,
        leader_epoch: i32,
    ) -> Result<&mut Partition, ErrorCode> {
        let partition = self.partition_mut(name, partition).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        if partition.leader != Some(node) {
            return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        }
        match partition.log.leader_epoch() {
            _ if leader_epoch == NO_EPOCH => Ok(partition),
            current if leader_epoch < current => Err(ErrorCode::FENCED_LEADER_EPOCH),
            current if leader_epoch > current => Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
            _ => Ok(partition),
        }
    }

    /// Whether a topic could be created, with the number of partitions and replicas it would have.
    pub(crate) fn check_new(&self, new: &NewTopic, nodes: &Nodes) -> Result<(i32, i16), Refusal> {
        self.check_new_name(&new.name)?;
        for (name, value) in &new.configs {
            config::check(name, Some(value))?;
        }
        let replication = if new.replication == -1 { 1 } else { new.replication };
        if replication < 1 {
            let why = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, why));
        }
        let partitions = if new.partitions == -1 { 1 } else { new.partitions };
        if partitions < 1 {
            let why = format!("Number of partitions was set to an invalid non-positive value: {partitions}");
            return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, why));
        }
        if partitions > MAX_NEW_PARTITIONS {
            let why = format!("more than {MAX_NEW_PARTITIONS} partitions in one request");
            return Err(Refusal::new(ErrorCode::POLICY_VIOLATION, why));
        }
        let known = nodes.all().len();
        if usize::try_from(replication).map_or(true, |count| count > known) {
            let why = format!(
                "Replication factor: {replication} is not between 1 and the number of brokers, {known}"
            );
            return Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, why));
        }
        Ok((partitions, replication))
    }

    /// Whether a new topic could have this name.
    pub(crate) fn check_new_name(&self, name: &str) -> Result<(), Refusal> {
        check_name(name)?;
        if self.by_name.contains_key(name) {
            let why = format!("Topic '{name}' already exists.");
            return Err(Refusal::new(ErrorCode::TOPIC_ALREADY_EXISTS, why));
        }
        // Metrics of Kafka write both as an underscore, so it refuses what would collide there.
        if let Some(other) = self.by_metric.get(&in_metrics(name)) {
            let why = format!("Topic '{name}' collides with existing topic: {other}");
            return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why));
        }
        Ok(())
    }

    /// Creates a topic.
    pub(crate) fn create(
        &mut self,
        new: &NewTopic,
        nodes: &Nodes,
        storage: &mut Storage,
    ) -> Result<&Topic, Refusal> {
        let (partitions, replication) = self.check_new(new, nodes)?;
        let configs = config::of_new_topic(&new.configs);
        let mut topic = Topic { id: super::random_uuid(), replication, configs, partitions: Vec::new() };
        let mut meta = topic.meta(&new.name);
        meta.partitions = partitions;
        storage.put_topic(meta)?;
        if let Err(error) = grow(storage, nodes, &new.name, &mut topic, partitions) {
            storage.remove_topic(&new.name)?;
            return Err(error.into());
        }
        Ok(self.insert(&new.name, topic))
    }

    /// Deletes a topic. Fetches that wait for it learn that it is gone.
    pub(crate) fn delete(&mut self, name: &str, storage: &mut Storage) -> Result<(), Refusal> {
        if !self.by_name.contains_key(name) {
            return Err(Refusal::new(
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic.",
            ));
        }
        storage.remove_topic(name)?;
        self.by_metric.remove(&in_metrics(name));
        if let Some(mut topic) = self.by_name.remove(name) {
            topic.partitions.iter_mut().for_each(Partition::wake);
        }
        Ok(())
    }

    /// Whether a topic could have so many partitions.
    pub(crate) fn check_grow(&self, name: &str, count: i32) -> Result<(), Refusal> {
        let Some(topic) = self.by_name.get(name) else {
            return Err(Refusal::new(
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic.",
            ));
        };
        let current = topic.partition_count();
        let why = if count == current {
            format!("Topic already has {current} partition(s).")
        } else if count < current {
            format!(
                "The topic {name} currently has {current} partition(s); {count} would not be an increase."
            )
        } else if count.saturating_sub(current) > MAX_NEW_PARTITIONS {
            let why = format!("more than {MAX_NEW_PARTITIONS} partitions in one request");
            return Err(Refusal::new(ErrorCode::POLICY_VIOLATION, why));
        } else {
            return Ok(());
        };
        Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, why))
    }

    /// Adds partitions to a topic, up to a number.
    pub(crate) fn grow(
        &mut self,
        name: &str,
        count: i32,
        nodes: &Nodes,
        storage: &mut Storage,
    ) -> Result<(), Refusal> {
        self.check_grow(name, count)?;
        if let Some(topic) = self.by_name.get_mut(name) {
            let mut meta = topic.meta(name);
            meta.partitions = count;
            storage.put_topic(meta)?;
            grow(storage, nodes, name, topic, count)?;
        }
        Ok(())
    }

    /// Replaces a topic's settings.
    pub(crate) fn set_configs(
        &mut self,
        name: &str,
        configs: TopicConfigs,
        storage: &mut Storage,
    ) -> Result<(), Refusal> {
        let Some(topic) = self.by_name.get_mut(name) else {
            return Err(Refusal::new(
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic.",
            ));
        };
        let before = std::mem::replace(&mut topic.configs, configs);
        if let Err(error) = storage.put_topic(topic.meta(name)) {
            topic.configs = before;
            return Err(error.into());
        }
        let log_config = config::log_config(&topic.configs);
        for partition in &mut topic.partitions {
            partition.log.set_config(log_config.clone());
        }
        Ok(())
    }

    /// Chooses leaders again after a node went down or came up.
    pub(crate) fn elect(&mut self, nodes: &Nodes, storage: &mut Storage) -> Result<(), StorageError> {
        // Where an election may lead to.
        storage.keep_leader_epoch(self.highest_leader_epoch().saturating_add(1))?;
        self.partitions_mut().for_each(|partition| partition.elect(nodes));
        Ok(())
    }

    /// Forgets producers that have written nothing since then.
    pub(crate) fn expire_producers(&mut self, before: i64) {
        self.partitions_mut().for_each(|partition| partition.log.expire_producers(before));
    }
}

fn in_metrics(name: &str) -> String {
    name.replace('.', "_")
}

fn grow(
    storage: &Storage,
    nodes: &Nodes,
    name: &str,
    topic: &mut Topic,
    count: i32,
) -> Result<(), StorageError> {
    let log_config = config::log_config(&topic.configs);
    for partition in topic.partition_count()..count {
        let log = storage.open_log(name, topic.id, partition, log_config.clone())?;
        let index = usize::try_from(partition).unwrap_or_default();
        let replication = usize::try_from(topic.replication).unwrap_or(1);
        topic.partitions.push(Partition::new(log, nodes.replicas(name, index, replication), nodes));
    }
    Ok(())
}

/// Refuses a name that no topic can have.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let why = if name.is_empty() {
        "Topic name is invalid: the empty string is not allowed".to_owned()
    } else if name == "." || name == ".." {
        "Topic name is invalid: '.' or '..' is not allowed".to_owned()
    } else if name.len() > 249 {
        "Topic name is invalid: the length of the name is longer than the max allowed length 249".to_owned()
    } else if !name.chars().all(legal) {
        "Topic name is invalid: it contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
            .to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why))
}
