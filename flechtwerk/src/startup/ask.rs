//! Questions to the cluster, each with a time limit and an error that a person can act on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use super::{Chosen, Problem};
use crate::naming::StageNames;
use crate::port::{
    BrokerError, Cluster, Committed, ErrorKind, OffsetCommit, Stability, TopicDescription, TopicPartition,
};
use crate::settings::{Settings, duration_text};

/// Pause between two attempts of a question.
const PAUSE: Duration = Duration::from_millis(50);
/// How long one attempt may take. A request can be lost on a coordinator that is just moving; the next one finds it.
const ATTEMPT: Duration = Duration::from_secs(3);

/// How long the offsets of a whole group are asked for at once: the client itself repeats the question until then.
const TOGETHER: Duration = Duration::from_millis(500);

/// Whoever waits for the start has asked to stop: no question is repeated any more.
pub(crate) static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Asks a cluster, repeating what may be repeated.
pub(crate) struct Asker<'a> {
    cluster: &'a dyn Cluster,
    settings: &'a Settings,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(cluster: &'a dyn Cluster, settings: &'a Settings) -> Self {
        Asker { cluster, settings }
    }

    /// Asks, and asks again while that may help: leaders and coordinators move, and are new on new topics.
    pub(crate) fn ask<T>(
        &self,
        call: impl Fn(&dyn Cluster, Duration) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        repeat(self.settings.connect_timeout, |left| call(self.cluster, left))
    }

    /// Where the cluster is.
    pub(crate) fn address(&self) -> &str {
        &self.settings.bootstrap_servers
    }

    /// The cluster answers at all.
    pub(crate) fn answers(&self) -> Result<(), Problem> {
        match self.ask(|cluster, left| cluster.brokers(left)) {
            Ok(_) => Ok(()),
            Err(error) => Err(Problem {
                what: format!(
                    "no broker at {} answered within {}: {error}",
                    self.settings.bootstrap_servers,
                    duration_text(self.settings.connect_timeout)
                ),
                place: "setting `bootstrap_servers`".into(),
                why: "nothing can be checked or run without the cluster".into(),
                mend: "start the brokers, or name others with --bootstrap-servers HOST:PORT\nwhere they ask for TLS or a \
                       user, see --security-protocol; the client's own log lines say more"
                    .into(),
            }),
        }
    }

    /// Describes all topics that these stages use, as far as they exist.
    pub(crate) fn topics(&self, stages: &[Chosen]) -> Result<BTreeMap<Arc<str>, TopicDescription>, Problem> {
        let used =
            stages.iter().flat_map(|Chosen { names, .. }| names.topics().chain(&names.changelog).cloned());
        let mut names: Vec<Arc<str>> = used.collect();
        names.sort();
        names.dedup();
        self.ask(|cluster, left| cluster.topics(&names, left)).map_err(|error| {
            self.failed(format!("the topics can't be described: {error}"), "topics of the pipeline".into())
        })
    }

    /// The problem of a question that was not answered.
    pub(crate) fn failed(&self, what: String, place: String) -> Problem {
        Problem {
            what,
            place,
            why: format!("cluster {}", self.settings.bootstrap_servers),
            mend: "see the brokers' state and the permissions of this user, then start again".into(),
        }
    }

    /// Committed offsets. Stable ones are waited for: a transaction that is being finished, or that a dead owner has
    /// left behind.
    pub(crate) fn committed(
        &self,
        group: &str,
        partitions: &[TopicPartition],
        which: Stability,
    ) -> Result<Vec<Committed>, Problem> {
        // An owner that died leaves an open transaction for as long as it was allowed to take.
        let limit = self.settings.connect_timeout + self.settings.transaction_timeout;
        let one_by_one = || {
            let deadline = Instant::now() + limit;
            let mut all = Vec::with_capacity(partitions.len());
            for partition in partitions {
                let left = deadline.saturating_duration_since(Instant::now());
                let single = std::slice::from_ref(partition);
                all.extend(repeat(left, |left| self.cluster.committed(group, single, which, left))?);
            }
            Ok(all)
        };
        // In a busy group there may never be a moment at which all partitions are stable; each one often is.
        let answer = match self.cluster.committed(group, partitions, which, limit.min(TOGETHER)) {
            Err(error) if may_be_repeated(&error) => one_by_one(),
            answer => answer,
        };
        answer.map_err(|error| {
            self.failed(format!("the committed offsets can't be read: {error}"), format!("group `{group}`"))
        })
    }

    /// Commits to a group without members.
    pub(crate) fn commit(&self, group: &str, offsets: &[OffsetCommit]) -> Result<(), Problem> {
        self.ask(|cluster, left| cluster.commit(group, offsets, left)).map_err(|error| {
            self.failed(format!("the offsets can't be committed: {error}"), format!("group `{group}`"))
        })
    }
}

/// Committed offsets of all partitions that a stage's tasks own and that exist.
pub(crate) fn committed_of(
    asker: &Asker<'_>,
    names: &StageNames,
    which: Stability,
    partitions: impl Fn(&Arc<str>) -> i32,
) -> Result<Vec<Committed>, Problem> {
    let leases = names.leases.iter().map(|topic| (topic, partitions(topic)));
    let witness = names.witness.iter().map(|topic| (topic, partitions(topic).min(1)));
    let all = leases.chain(witness).flat_map(|(topic, count)| {
        (0..count).map(|partition| TopicPartition { topic: topic.clone(), partition })
    });
    let all: Vec<_> = all.collect();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    asker.committed(names.group(), &all, which)
}

/// A topic that is asked about was described before, so a broker that does not know it yet will.
fn may_be_repeated(error: &BrokerError) -> bool {
    matches!(error.kind, ErrorKind::Retriable | ErrorKind::TimedOut) || error.is_unknown_topic()
}

/// The same call again while that may help, at most `limit` long; each call gets its time limit.
pub(super) fn repeat<T>(
    limit: Duration,
    mut call: impl FnMut(Duration) -> Result<T, BrokerError>,
) -> Result<T, BrokerError> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match call(left.min(ATTEMPT)) {
            Err(error) if may_be_repeated(&error) => {
                if Instant::now() + PAUSE >= deadline || INTERRUPTED.load(SeqCst) {
                    return Err(error);
                }
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}
