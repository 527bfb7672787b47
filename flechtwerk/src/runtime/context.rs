//! What all tasks of a stage instance share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backon::{BlockingRetryable, ExponentialBuilder};

use super::error::Failure;
use super::host;
use super::tables::Shared;
use super::watchdog::Watchdog;
use crate::glue::{AnyStage, StageInfo};
use crate::naming::StageNames;
use crate::port::{
    BrokerError, ErrorKind, Group, ProducerFactory, Reader, Schemas, StoreFactory, TopicPartition,
};

/// A call that is repeated for longer says so, each time this has passed.
const STILL_INTERVAL: Duration = Duration::from_secs(10);

/// The limits a task works by; see the settings of the same names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_poll_records: usize,
    /// Bytes.
    pub(crate) max_batch_bytes: usize,
    pub(crate) max_batch_time: Duration,
    pub(crate) commit_interval: Duration,
    pub(crate) broker_timeout: Duration,
    pub(crate) revoke_timeout: Duration,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) transaction_timeout: Duration,
    pub(crate) max_concurrent_polls: usize,
    /// Positions that moved without any record are committed after this long (S3.3); no setting.
    pub(crate) idle_commit: Duration,
}

/// The changelog of a stage with state.
#[derive(Clone, Debug)]
pub(crate) struct Changelog {
    pub(crate) topic: Arc<str>,
    /// Kafka's topic id.
    pub(crate) id: String,
    pub(crate) partitions: i32,
}

/// See the module.
pub(crate) struct StageContext {
    pub(crate) stage: &'static dyn AnyStage,
    pub(crate) info: &'static StageInfo,
    pub(crate) names: StageNames,
    pub(crate) changelog: Option<Changelog>,
    /// Under which this process is a static member (S5.2).
    pub(crate) instance_id: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) shared: Shared,
    pub(crate) group: Arc<dyn Group>,
    pub(crate) inputs: Arc<dyn Reader>,
    pub(crate) changelogs: Option<Arc<dyn Reader>>,
    pub(crate) producers: Arc<dyn ProducerFactory>,
    pub(crate) stores: Arc<dyn StoreFactory>,
    pub(crate) watchdog: Watchdog,
    pub(crate) progress: crate::observe::Restores,
    pub(crate) positions: super::lag::Positions,
    /// Where schemas come from that records name; `None` without a registry.
    pub(crate) schemas: Option<Arc<dyn Schemas>>,
    /// Of an extractor: its configs.
    pub(crate) configs: Option<Arc<super::configs::Configs>>,
    /// Calls of an extractor that may still begin (`max_concurrent_polls`).
    pub(crate) polls: Arc<tokio::sync::Semaphore>,
}

impl StageContext {
    /// The partitions that a task commits, in `inputs` order; those of a token are leases. A witness is that of the one token, 0.
    pub(crate) fn input_partitions(&self, partition: i32) -> Vec<TopicPartition> {
        self.names.stamped().map(|topic| TopicPartition { topic: topic.clone(), partition }).collect()
    }

    /// Repeats a call while it may succeed by repeating, up to `broker_timeout` (S6.2). `Ok(None)`: cancelled. The checks of
    /// the start have seen every topic, so one that a broker does not know may be known to it in a moment.
    pub(crate) fn retry<T>(
        &self,
        what: &str,
        cancel: &Cancel,
        call: impl FnMut() -> Result<T, BrokerError>,
    ) -> Result<Option<T>, Failure> {
        let who = format!("stage {}", self.info.name);
        repeat(&who, self.limits.broker_timeout, what, cancel, call)
    }
}

/// See [`StageContext::retry`]; `who` begins the messages.
pub(crate) fn repeat<T>(
    who: &str,
    limit: Duration,
    what: &str,
    cancel: &Cancel,
    mut call: impl FnMut() -> Result<T, BrokerError>,
) -> Result<Option<T>, Failure> {
    let begin = host::now();
    let until = begin + limit;
    let mut said = begin;
    let result = (|| call())
        .retry(
            ExponentialBuilder::default()
                .with_min_delay(Duration::from_millis(10))
                .with_max_delay(Duration::from_secs(1))
                .without_max_times(),
        )
        .sleep(host::sleep)
        .when(|error: &BrokerError| {
            let passing = matches!(error.kind, ErrorKind::Retriable | ErrorKind::TimedOut);
            (passing || error.is_unknown_topic()) && !cancel.is_cancelled() && host::now() < until
        })
        .notify(|error, _| {
            tracing::debug!(%error, "{who}: asking again: {what}");
            if host::since(said) >= STILL_INTERVAL {
                said = host::now();
                let waited = host::since(begin).as_secs();
                tracing::warn!(%error, "{who}: still can't {what} after {waited} s; asking again");
            }
        })
        .call();
    match result {
        Ok(value) => Ok(Some(value)),
        Err(_) if cancel.is_cancelled() => Ok(None),
        Err(error) => Err(Failure::broker_of(who, what, &error)),
    }
}

/// Tells the blocking calls of a task that it is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
