//! Administration of the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ClientSettings;
use super::client::{Role, connect};
use super::errors::broker_error;
use super::ffi::{Handle, Isolation, NativeError, OffsetSpec, Queue, TopicSpec, TopicState, code};
use super::group::committed;
use super::logging::{Servant, Source};
use super::producer::offset_list;
use super::reader::offset;
use crate::port::{
    BrokerError, Cluster, Committed, ErrorKind, NewTopic, OffsetCommit, PerTopic, Stability,
    TopicDescription, TopicPartition, Watermarks,
};

/// Between two looks at whether a change has become visible.
const LOOK: Duration = Duration::from_millis(20);

/// A client for administration.
pub(super) struct KafkaCluster {
    settings: ClientSettings,
    source: Source,
    /// Before the client: it polls it.
    _logs: Servant,
    handle: Arc<Handle>,
}

/// The time that is left.
#[derive(Clone, Copy)]
struct Deadline(Instant);

impl Deadline {
    fn new(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    /// At least a millisecond, since zero would mean not to wait for the answer at all.
    fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    fn passed(self) -> bool {
        Instant::now() >= self.0
    }
}

fn refused(error: NativeError) -> BrokerError {
    broker_error(error, ErrorKind::Hopeless)
}

/// An answer about one topic.
fn refused_topic(what: &str, topic: &str, error: NativeError) -> BrokerError {
    let text = format!("{what} topic `{topic}`: {}", error.text);
    refused(NativeError { text, ..error })
}

fn is_absent(error: &NativeError) -> bool {
    matches!(error.code, code::UNKNOWN_TOPIC_OR_PART | code::LOCAL_UNKNOWN_TOPIC | code::UNKNOWN_TOPIC_ID)
}

impl KafkaCluster {
    pub(super) fn new(settings: &ClientSettings) -> Result<Self, BrokerError> {
        let role = Role::Cluster;
        let handle = connect(settings, role)?;
        let source = Source::new(settings, role);
        let logs = Servant::start(Queue::main(&handle), source.clone(), |_| {})?;
        Ok(Self { settings: settings.clone(), source, _logs: logs, handle })
    }

    /// An answer that is about the request as a whole.
    fn refused(&self, error: NativeError) -> BrokerError {
        self.source.explain(refused(error))
    }

    /// The topics that exist.
    fn existing(
        &self,
        names: &[Arc<str>],
        until: Deadline,
    ) -> Result<BTreeMap<Arc<str>, TopicState>, BrokerError> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let described =
            self.handle.describe_topics(names, until.left()).map_err(|error| self.refused(error))?;
        described
            .into_iter()
            .filter_map(|(name, state)| match state {
                Ok(state) => Some(Ok((Arc::from(name), state))),
                Err(error) if is_absent(&error) => None,
                Err(error) => Some(Err(refused_topic("describing", &name, error))),
            })
            .collect()
    }

    /// Looks again and again until what is there is as wanted.
    fn wait(
        &self,
        names: &[Arc<str>],
        until: Deadline,
        wanted: impl Fn(&BTreeMap<Arc<str>, TopicState>) -> bool,
    ) -> Result<(), BrokerError> {
        loop {
            match self.existing(names, until) {
                Ok(existing) if wanted(&existing) => return Ok(()),
                Err(error) if !matches!(error.kind, ErrorKind::Retriable | ErrorKind::TimedOut) => {
                    return Err(error);
                }
                _ if until.passed() => {
                    let text = "the change of topics did not become visible in time; ask again".to_owned();
                    return Err(refused(NativeError::new(code::LOCAL_TIMED_OUT, text)));
                }
                _ => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Cluster for KafkaCluster {
    fn brokers(&self, limit: Duration) -> Result<usize, BrokerError> {
        self.handle.metadata(None, limit).map_err(|error| self.refused(error))
    }

    fn topics(
        &self,
        names: &[Arc<str>],
        limit: Duration,
    ) -> Result<BTreeMap<Arc<str>, TopicDescription>, BrokerError> {
        let until = Deadline::new(limit);
        let existing = self.existing(names, until)?;
        if existing.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found: Vec<Arc<str>> = existing.keys().cloned().collect();
        let wanted = ["cleanup.policy", "max.message.bytes"];
        let settings =
            self.handle.topic_settings(&found, &wanted, until.left()).map_err(|error| self.refused(error))?;
        let mut described = BTreeMap::new();
        for (name, settings) in settings {
            let settings = match settings {
                Ok(settings) => settings,
                // Deleted between the two questions.
                Err(error) if is_absent(&error) => continue,
                Err(error) => return Err(refused_topic("describing", &name, error)),
            };
            let Some((name, state)) = existing.get_key_value(name.as_str()) else { continue };
            let mut policy: Vec<&str> =
                settings.get("cleanup.policy").map_or("", String::as_str).split(',').map(str::trim).collect();
            policy.sort_unstable();
            described.insert(
                Arc::clone(name),
                TopicDescription {
                    partitions: state.partitions,
                    id: state.id.clone(),
                    cleanup_policy: policy.join(","),
                    max_message_bytes: settings.get("max.message.bytes").and_then(|bytes| bytes.parse().ok()),
                },
            );
        }
        Ok(described)
    }

    fn create_topics(&self, topics: &[NewTopic], limit: Duration) -> Result<PerTopic, BrokerError> {
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let until = Deadline::new(limit);
        let specs: Vec<TopicSpec<'_>> = topics
            .iter()
            .map(|topic| TopicSpec {
                name: &topic.name,
                partitions: topic.partitions,
                replication_factor: topic.replication_factor,
                config: &topic.config,
            })
            .collect();
        let results = self.handle.create_topics(&specs, until.left()).map_err(|error| self.refused(error))?;
        let outcomes: PerTopic = results
            .into_iter()
            .map(|(name, result)| {
                let outcome = match result {
                    Err(error) if error.code == code::TOPIC_ALREADY_EXISTS => Ok(()),
                    result => result.map_err(|error| refused_topic("creating", &name, error)),
                };
                (Arc::from(name), outcome)
            })
            .collect();
        let created: Vec<Arc<str>> = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.is_ok())
            .map(|(name, _)| Arc::clone(name))
            .collect();
        self.wait(&created, until, |existing| {
            created.iter().all(|name| existing.get(name).is_some_and(|state| state.led))
        })?;
        Ok(outcomes)
    }

    fn delete_topics(&self, names: &[Arc<str>], limit: Duration) -> Result<(), BrokerError> {
        if names.is_empty() {
            return Ok(());
        }
        let until = Deadline::new(limit);
        for (name, result) in
            self.handle.delete_topics(names, until.left()).map_err(|error| self.refused(error))?
        {
            match result {
                Err(error) if !is_absent(&error) => return Err(refused_topic("deleting", &name, error)),
                _ => {}
            }
        }
        self.wait(names, until, BTreeMap::is_empty)
    }

    fn group_members(&self, group: &str, limit: Duration) -> Result<usize, BrokerError> {
        match self.handle.group_members(group, limit) {
            Err(error) if error.code == code::GROUP_ID_NOT_FOUND => Ok(0),
            members => members.map_err(|error| self.refused(error)),
        }
    }

    fn committed(
        &self,
        group: &str,
        partitions: &[TopicPartition],
        which: Stability,
        limit: Duration,
    ) -> Result<Vec<Committed>, BrokerError> {
        // By a consumer of that group, which never joins it: the admin request of librdkafka 2.12 reads through a
        // null pointer when the broker that it asks is not the group's coordinator (yet).
        let handle = connect(&self.settings, Role::Offsets { group, which })?;
        committed(handle.committed(partitions, limit).map_err(|error| self.refused(error))?)
    }

    fn commit(&self, group: &str, offsets: &[OffsetCommit], limit: Duration) -> Result<(), BrokerError> {
        let list = offset_list(offsets)?;
        let committed = self.handle.alter_group_offsets(group, &list, limit).map_err(|error| {
            let text = match error.code {
                code::UNKNOWN_MEMBER_ID | code::NON_EMPTY_GROUP | code::REBALANCE_IN_PROGRESS => {
                    format!("group `{group}` has members; stop them first")
                }
                _ => error.text.clone(),
            };
            broker_error(NativeError { text, ..error }, ErrorKind::Hopeless)
        })?;
        for entry in committed {
            if entry.code != code::NO_ERROR {
                let text = match entry.code {
                    code::UNKNOWN_MEMBER_ID | code::NON_EMPTY_GROUP | code::REBALANCE_IN_PROGRESS => {
                        format!("group `{group}` has members; stop them first")
                    }
                    number => format!(
                        "committing {} of group `{group}`: {}",
                        entry.at,
                        super::ffi::describe(number)
                    ),
                };
                return Err(refused(NativeError::new(entry.code, text)));
            }
        }
        Ok(())
    }

    fn offset_for_time(&self, at: &TopicPartition, millis: i64, limit: Duration) -> Result<i64, BrokerError> {
        let until = Deadline::new(limit);
        let found = offset(&self.handle, at, OffsetSpec::Since(millis), Isolation::Committed, until.left());
        let found = found.map_err(|error| self.source.explain(error))?;
        if found >= 0 {
            return Ok(found);
        }
        let end = offset(&self.handle, at, OffsetSpec::Latest, Isolation::Committed, until.left());
        end.map_err(|error| self.source.explain(error))
    }

    fn watermarks(&self, at: &TopicPartition, limit: Duration) -> Result<Watermarks, BrokerError> {
        let until = Deadline::new(limit);
        let ask = |spec, isolation| {
            offset(&self.handle, at, spec, isolation, until.left())
                .map_err(|error| self.source.explain(error))
        };
        // The high watermark first: where the last stable offset has reached it afterwards, every transaction up
        // to it has ended.
        let high = ask(OffsetSpec::Latest, Isolation::Uncommitted)?;
        let stable = ask(OffsetSpec::Latest, Isolation::Committed)?;
        let low = ask(OffsetSpec::Earliest, Isolation::Committed)?;
        Ok(Watermarks { low, stable, high: high.max(stable) })
    }
}
