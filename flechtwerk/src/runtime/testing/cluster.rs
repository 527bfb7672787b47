//! A cluster that answers what a test says, one call after another, and keeps what it was asked.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::format::ChangelogRecord;
use crate::glue::{Outputs, RawRecord};
use crate::port::{
    BrokerError, Committed, ErrorKind, Group, OffsetCommit, Producer, ProducerFactory, Queue, Reader, Taken,
    TopicNow, TopicPartition, Unanswered, Wake, Watermarks,
};

/// More than any reader has to ask of what a test gives it: one that goes on does so for ever.
const MOST_TAKES: usize = 1_000;

pub(crate) fn error(kind: ErrorKind) -> BrokerError {
    BrokerError { kind, code: format!("{kind:?}"), text: "as the test says".into(), output: None, size: None }
}

#[derive(Default)]
pub(crate) struct Inside {
    /// What was asked, in order: the call's name, and what there is to know of it.
    pub(crate) calls: Vec<String>,
    /// By name of the call: what it fails with before it succeeds.
    failures: BTreeMap<&'static str, VecDeque<BrokerError>>,
    /// By name of the call: what is known of unanswered requests behind it.
    behind: BTreeMap<&'static str, Unanswered>,
    pub(crate) unanswered: Unanswered,
    pub(crate) delivery_error: Option<BrokerError>,
    pub(crate) committed: Vec<Committed>,
    /// The last one stays.
    pub(crate) watermarks: VecDeque<Watermarks>,
    pub(crate) topic_id: String,
    /// Of each topic that `partitions_of` does not name.
    pub(crate) partitions: i32,
    pub(crate) partitions_of: BTreeMap<&'static str, i32>,
    /// What the members of the group subscribe to.
    pub(crate) members: Vec<(String, Vec<String>)>,
    /// What a queue gives, one call after another; then nothing.
    pub(crate) takes: VecDeque<(Vec<RawRecord>, Option<i64>)>,
    pub(crate) taken: usize,
    pub(crate) wake: Option<Wake>,
    /// How often a producer was served.
    pub(crate) served: usize,
    /// Producers there are.
    pub(crate) producers: usize,
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Cluster(Arc<Mutex<Inside>>);

impl Cluster {
    pub(crate) fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next calls of this name fail.
    pub(crate) fn fail(&self, call: &'static str, with: impl IntoIterator<Item = BrokerError>) {
        self.inside().failures.entry(call).or_default().extend(with);
    }

    /// The next calls of this name succeed.
    pub(crate) fn forgive(&self, call: &'static str) {
        self.inside().failures.remove(call);
    }

    /// Behind each call of this name, this is known of unanswered requests.
    pub(crate) fn behind(&self, call: &'static str, unanswered: Unanswered) {
        self.inside().behind.insert(call, unanswered);
    }

    /// What was asked since the last time.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.inside().calls)
    }

    /// How often a call of this name was made since the last look at all of them.
    pub(crate) fn count(&self, call: &str) -> usize {
        self.inside().calls.iter().filter(|text| text.split(' ').next() == Some(call)).count()
    }

    pub(crate) fn producer(&self) -> Box<dyn Producer> {
        self.inside().producers += 1;
        Box::new(Sender(self.clone()))
    }

    fn call(&self, name: &'static str, of: &str) -> Result<(), BrokerError> {
        let mut inside = self.inside();
        inside.calls.push(format!("{name} {of}").trim_end().to_owned());
        if let Some(unanswered) = inside.behind.get(name).copied() {
            inside.unanswered = unanswered;
        }
        let failure = inside.failures.get_mut(name).and_then(VecDeque::pop_front);
        failure.map_or(Ok(()), Err)
    }
}

impl Group for Cluster {
    fn committed(&self, partitions: &[TopicPartition], _: Duration) -> Result<Vec<Committed>, BrokerError> {
        let names: Vec<String> = partitions.iter().map(ToString::to_string).collect();
        self.call("committed", &names.join(" "))?;
        Ok(self.inside().committed.clone())
    }

    fn subscriptions(&self, _: Duration) -> Result<Vec<(String, Vec<String>)>, BrokerError> {
        Ok(self.inside().members.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn leave(&self, _: bool, _: Duration) -> Result<(), BrokerError> {
        Ok(())
    }
}

impl Reader for Cluster {
    fn open(
        &self,
        at: &TopicPartition,
        _: u16,
        offset: i64,
        wake: Wake,
    ) -> Result<Box<dyn Queue>, BrokerError> {
        self.call("open", &format!("{at} {offset}"))?;
        self.inside().wake = Some(wake);
        Ok(Box::new(Records(self.clone())))
    }

    fn watermarks(&self, at: &TopicPartition, _: Duration) -> Result<Watermarks, BrokerError> {
        self.call("watermarks", &at.to_string())?;
        let mut inside = self.inside();
        let first = inside.watermarks.front().copied().expect("a test says where its partitions end");
        if inside.watermarks.len() > 1 {
            inside.watermarks.pop_front();
        }
        Ok(first)
    }

    fn topic(&self, topic: &Arc<str>, _: Duration) -> Result<TopicNow, BrokerError> {
        self.call("topic_id", topic)?;
        let inside = self.inside();
        let partitions = inside.partitions_of.get(&**topic).copied().unwrap_or(inside.partitions);
        Ok(TopicNow { id: inside.topic_id.clone(), partitions })
    }

    fn warm_up(&self, _: &[Arc<str>], _: Duration) {}
}

struct Records(Cluster);

impl Queue for Records {
    fn take(
        &mut self,
        max: usize,
        max_bytes: usize,
        into: &mut Vec<RawRecord>,
    ) -> Result<Taken, BrokerError> {
        let failed = self.0.call("take", "");
        let mut inside = self.0.inside();
        inside.taken += 1;
        assert!(inside.taken < MOST_TAKES, "a reader that does not end");
        failed?;
        if max == 0 || max_bytes == 0 {
            return Ok(Taken::default());
        }
        let (records, end) = inside.takes.pop_front().unwrap_or_default();
        let bytes = records.iter().map(RawRecord::size).sum();
        let taken = Taken { records: records.len(), bytes, end };
        into.extend(records);
        Ok(taken)
    }

    #[cfg(feature = "broker-tests")]
    fn waiting(&self) -> usize {
        0
    }
}

impl ProducerFactory for Cluster {
    fn create(&self, transactional_id: &str, _: &str) -> Result<Box<dyn Producer>, BrokerError> {
        self.call("create", transactional_id)?;
        Ok(self.producer())
    }
}

struct Sender(Cluster);

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.inside().producers -= 1;
    }
}

impl Producer for Sender {
    fn fence(&mut self, limit: Duration) -> Result<(), BrokerError> {
        self.0.call("fence", &format!("{limit:?}"))
    }

    fn begin(&mut self) -> Result<(), BrokerError> {
        self.0.call("begin", "")
    }

    fn produce(&mut self, outputs: &Outputs, topics: &[Arc<str>]) -> Result<(), BrokerError> {
        self.0.call("produce", &format!("{} {}", outputs.records.len(), topics.join(" ")))
    }

    fn produce_changelog(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        changes: &[ChangelogRecord],
    ) -> Result<(), BrokerError> {
        self.0.call("produce_changelog", &format!("{} {topic}/{partition}", changes.len()))
    }

    fn send_offsets(
        &mut self,
        offsets: &[OffsetCommit],
        _: &dyn Group,
        limit: Duration,
    ) -> Result<(), BrokerError> {
        let offsets: Vec<String> =
            offsets.iter().map(|one| format!("{} {} {}", one.at, one.offset, one.metadata)).collect();
        self.0.call("send_offsets", &format!("{} {limit:?}", offsets.join(" ")))
    }

    fn commit(&mut self, slice: Duration) -> Result<(), BrokerError> {
        self.0.call("commit", &format!("{slice:?}"))
    }

    fn abort(&mut self, limit: Duration) -> Result<(), BrokerError> {
        self.0.call("abort", &format!("{limit:?}"))
    }

    fn delivery_error(&mut self) -> Option<BrokerError> {
        self.0.inside().delivery_error.take()
    }

    fn unanswered(&self) -> Unanswered {
        self.0.inside().unanswered
    }

    fn serve(&mut self) {
        self.0.inside().served += 1;
    }
}
