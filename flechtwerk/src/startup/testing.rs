//! What the tests of checks and commands share: a cluster in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::naming::Known;
use crate::port::{
    BrokerError, Cluster, Committed, ErrorKind, NewTopic, OffsetCommit, Stability, TopicDescription,
    TopicPartition, Watermarks,
};

pub(crate) use crate::demo::{
    COUNT, COUNT_ALL, DEMO, Described, ENRICH, EXTRACT, JOIN, JUDGE, LOOKUP, MERGE, POLL, POLL_BOTH, TICK,
};

/// All settings were understood.
pub(crate) const KNOWN: Known = Known { namespace: true, topics: true };

/// A topic of the cluster in memory.
#[derive(Clone, Debug)]
struct Topic {
    description: TopicDescription,
    /// Records' timestamps by partition; the offset is the index.
    records: Vec<Vec<i64>>,
    /// By partition, the offset of the oldest record that is left.
    oldest: Vec<usize>,
}

#[derive(Debug, Default)]
struct Inside {
    topics: BTreeMap<Arc<str>, Topic>,
    committed: BTreeMap<(String, TopicPartition), (i64, String)>,
    members: BTreeMap<String, usize>,
    made: usize,
    calls: Vec<String>,
    /// Offsets of several partitions at once are never all stable.
    busy: bool,
    /// So many questions about topics are still answered by a broker that knows nothing of those being made.
    lagging: usize,
    /// What that broker does not know.
    late: Vec<Arc<str>>,
    /// Calls whose name starts so fail, behind so many that don't.
    failing: Option<(&'static str, ErrorKind, usize)>,
}

/// A cluster that lives in memory and keeps a list of what changed it.
#[derive(Debug, Default)]
pub(crate) struct FakeCluster(Mutex<Inside>);

impl FakeCluster {
    pub(crate) fn topic(self, name: &str, partitions: i32) -> Self {
        self.add(name, partitions, "delete");
        self
    }

    pub(crate) fn changelog(self, name: &str, partitions: i32) -> Self {
        self.add(name, partitions, "compact");
        self
    }

    pub(crate) fn with_policy(self, name: &str, partitions: i32, policy: &str) -> Self {
        self.add(name, partitions, policy);
        self
    }

    pub(crate) fn records(self, name: &str, partition: usize, timestamps: &[i64]) -> Self {
        self.0.lock().unwrap().topics.get_mut(name).unwrap().records[partition] = timestamps.to_vec();
        self
    }

    /// What lies before this offset has been deleted by its age.
    pub(crate) fn oldest(self, name: &str, partition: usize, offset: usize) -> Self {
        self.0.lock().unwrap().topics.get_mut(name).unwrap().oldest[partition] = offset;
        self
    }

    pub(crate) fn committed(
        self,
        group: &str,
        topic: &str,
        partition: i32,
        offset: i64,
        metadata: &str,
    ) -> Self {
        let at = TopicPartition { topic: topic.into(), partition };
        self.0.lock().unwrap().committed.insert((group.into(), at), (offset, metadata.into()));
        self
    }

    pub(crate) fn members(self, group: &str, count: usize) -> Self {
        self.0.lock().unwrap().members.insert(group.into(), count);
        self
    }

    pub(crate) fn busy(self) -> Self {
        self.0.lock().unwrap().busy = true;
        self
    }

    pub(crate) fn lagging(self, answers: usize) -> Self {
        self.0.lock().unwrap().lagging = answers;
        self
    }

    pub(crate) fn fail(&self, call: &'static str, kind: ErrorKind) {
        self.fail_after(0, call, kind);
    }

    /// The same, once so many of these calls have succeeded.
    pub(crate) fn fail_after(&self, succeed: usize, call: &'static str, kind: ErrorKind) {
        self.0.lock().unwrap().failing = Some((call, kind, succeed));
    }

    pub(crate) fn mend(&self) {
        self.0.lock().unwrap().failing = None;
    }

    /// What changed the cluster, in order.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.0.lock().unwrap().calls.clone()
    }

    pub(crate) fn id(&self, topic: &str) -> String {
        self.0.lock().unwrap().topics[topic].description.id.clone()
    }

    pub(crate) fn has(&self, topic: &str) -> bool {
        self.0.lock().unwrap().topics.contains_key(topic)
    }

    fn add(&self, name: &str, partitions: i32, policy: &str) {
        let mut inside = self.0.lock().unwrap();
        inside.made += 1;
        let description = TopicDescription {
            partitions,
            id: format!("id-{}-of-{name}", inside.made),
            cleanup_policy: policy.into(),
            max_message_bytes: Some(1_048_588),
        };
        let records = vec![Vec::new(); usize::try_from(partitions).unwrap()];
        let oldest = vec![0; records.len()];
        inside.topics.insert(name.into(), Topic { description, records, oldest });
    }

    fn call(&self, name: &str) -> Result<std::sync::MutexGuard<'_, Inside>, BrokerError> {
        let mut inside = self.0.lock().unwrap();
        match &mut inside.failing {
            Some((call, kind, succeed)) if name.starts_with(*call) => match succeed.checked_sub(1) {
                None => return Err(error(*kind)),
                Some(left) => *succeed = left,
            },
            _ => {}
        }
        Ok(inside)
    }
}

fn error(kind: ErrorKind) -> BrokerError {
    BrokerError { kind, code: "_FAKE".into(), text: "it was told to fail".into(), output: None, size: None }
}

impl Cluster for FakeCluster {
    fn brokers(&self, _: Duration) -> Result<usize, BrokerError> {
        self.call("brokers").map(|_| 1)
    }

    fn topics(
        &self,
        names: &[Arc<str>],
        _: Duration,
    ) -> Result<BTreeMap<Arc<str>, TopicDescription>, BrokerError> {
        let mut inside = self.call("topics")?;
        let late = if inside.late.is_empty() || inside.lagging == 0 {
            Vec::new()
        } else {
            inside.lagging -= 1;
            inside.late.clone()
        };
        let known = names
            .iter()
            .filter(|name| !late.contains(name))
            .filter_map(|name| inside.topics.get_key_value(name));
        Ok(known.map(|(name, topic)| (name.clone(), topic.description.clone())).collect())
    }

    fn create_topics(
        &self,
        topics: &[NewTopic],
        _: Duration,
    ) -> Result<Vec<(Arc<str>, Result<(), BrokerError>)>, BrokerError> {
        drop(self.call("create")?);
        let mut results = Vec::new();
        for topic in topics {
            let policy = topic.config.get("cleanup.policy").map_or("delete", String::as_str);
            if !self.has(&topic.name) {
                // -1 stands for the broker's default of one partition.
                self.add(&topic.name, topic.partitions.max(1), policy);
            }
            self.0.lock().unwrap().late.push(topic.name.clone());
            let line =
                format!("create {} x{} r{} {policy}", topic.name, topic.partitions, topic.replication_factor);
            self.0.lock().unwrap().calls.push(line);
            results.push((topic.name.clone(), Ok(())));
        }
        Ok(results)
    }

    fn delete_topics(&self, names: &[Arc<str>], _: Duration) -> Result<(), BrokerError> {
        let mut inside = self.call("delete")?;
        for name in names {
            inside.topics.remove(name);
            inside.calls.push(format!("delete {name}"));
        }
        Ok(())
    }

    fn group_members(&self, group: &str, _: Duration) -> Result<usize, BrokerError> {
        Ok(self.call("members")?.members.get(group).copied().unwrap_or(0))
    }

    fn committed(
        &self,
        group: &str,
        partitions: &[TopicPartition],
        which: Stability,
        _: Duration,
    ) -> Result<Vec<Committed>, BrokerError> {
        let inside = self.call("committed")?;
        if inside.busy && which == Stability::Stable && partitions.len() > 1 {
            return Err(error(ErrorKind::Retriable));
        }
        let find = |at: &TopicPartition| inside.committed.get(&(group.to_owned(), at.clone())).cloned();
        let answers = partitions.iter().map(|at| match find(at) {
            Some((offset, metadata)) => Committed { at: at.clone(), offset: Some(offset), metadata },
            None => Committed { at: at.clone(), offset: None, metadata: String::new() },
        });
        Ok(answers.collect())
    }

    fn commit(&self, group: &str, offsets: &[OffsetCommit], _: Duration) -> Result<(), BrokerError> {
        let mut inside = self.call("commit ")?;
        for offset in offsets {
            let key = (group.to_owned(), offset.at.clone());
            inside.committed.insert(key, (offset.offset, offset.metadata.clone()));
            let (topic, partition) = (&offset.at.topic, offset.at.partition);
            inside
                .calls
                .push(format!("commit {group} {topic}/{partition} {} {:?}", offset.offset, offset.metadata));
        }
        Ok(())
    }

    fn offset_for_time(&self, at: &TopicPartition, millis: i64, _: Duration) -> Result<i64, BrokerError> {
        let inside = self.call("offset_for_time")?;
        let topic = &inside.topics[&at.topic];
        let records = &topic.records[at.partition as usize];
        let mut left = records.iter().enumerate().skip(topic.oldest[at.partition as usize]);
        let found = left.find(|(_, timestamp)| **timestamp >= millis).map(|(offset, _)| offset);
        Ok(i64::try_from(found.unwrap_or(records.len())).unwrap())
    }

    fn watermarks(&self, at: &TopicPartition, _: Duration) -> Result<Watermarks, BrokerError> {
        let inside = self.call("watermarks")?;
        let (topic, partition) = (&inside.topics[&at.topic], at.partition as usize);
        let end = i64::try_from(topic.records[partition].len()).unwrap();
        let low = i64::try_from(topic.oldest[partition]).unwrap();
        Ok(Watermarks { low, stable: end, high: end })
    }
}
