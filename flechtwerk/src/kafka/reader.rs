//! Readers: one consumer without subscription, a queue for each partition.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ClientSettings;
use super::client::{Role, connect};
use super::errors::broker_error;
use super::ffi::{Batch, Event, Handle, Isolation, NativeError, OffsetSpec, Queue, code};
use super::logging::{Servant, Source};
use crate::glue::RawRecord;
use crate::port::{
    BrokerError, ErrorKind, Queue as QueuePort, Reader, ReaderKind, Taken, TopicNow, TopicPartition, Wake,
    Watermarks,
};

/// A reader. Its queues may outlive it: the client goes with the last of them.
pub(super) struct KafkaReader {
    pub(super) shared: Arc<Shared>,
}

/// What the queues share.
pub(super) struct Shared {
    source: Source,
    /// Before the client: it polls it.
    _strays: Servant,
    /// A record arrived where nobody reads it. It never should; if it does, some task has a gap.
    astray: Arc<AtomicBool>,
    /// What is being read. The client has one queue for a partition, and one wake-up: a second opening would take
    /// both from the first.
    open: Mutex<HashSet<TopicPartition>>,
    /// Records come with their headers.
    headers: bool,
    pub(super) handle: Arc<Handle>,
}

impl KafkaReader {
    pub(super) fn new(settings: &ClientSettings, group: &str, kind: ReaderKind) -> Result<Self, BrokerError> {
        let role = Role::Reader { group, kind };
        let handle = connect(settings, role)?;
        let source = Source::new(settings, role);
        let queue = Queue::consumer(&handle).map_err(|error| broker_error(error, ErrorKind::Fatal))?;
        let astray = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&astray);
        let strays = Servant::start(queue, source.clone(), move |event| {
            if matches!(event, Event::Stray) {
                mark.store(true, SeqCst);
            }
        })?;
        let (open, headers) = (Mutex::default(), kind.headers());
        Ok(Self { shared: Arc::new(Shared { source, _strays: strays, astray, open, headers, handle }) })
    }
}

impl Shared {
    fn opened(&self) -> MutexGuard<'_, HashSet<TopicPartition>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader for KafkaReader {
    fn open(
        &self,
        at: &TopicPartition,
        input: u16,
        offset: i64,
        wake: Wake,
    ) -> Result<Box<dyn QueuePort>, BrokerError> {
        let handle = &self.shared.handle;
        let refused = |error| broker_error(error, ErrorKind::Fatal);
        let place = format!("{}-{}", at.topic, at.partition);
        // Held to the end: whoever closes it meanwhile must not take the new wake-up away.
        let mut opened = self.shared.opened();
        if opened.contains(at) {
            let text = format!("{place} is still being read; it has to be closed before it is opened again");
            return Err(broker_error(NativeError::new(code::LOCAL_IN_PROGRESS, text), ErrorKind::Retriable));
        }
        let mut queue = Queue::partition(handle, &at.topic, at.partition).map_err(refused)?;
        queue.set_wake(wake);
        let mut batch = Batch::new(queue, self.shared.headers);
        // What an earlier opening left behind.
        batch.discard();
        handle.assign_partition(at, offset).map_err(refused)?;
        opened.insert(at.clone());
        Ok(Box::new(KafkaQueue {
            batch,
            at: at.clone(),
            place,
            input,
            from: offset,
            failed: None,
            shared: Arc::clone(&self.shared),
        }))
    }

    fn watermarks(&self, at: &TopicPartition, limit: Duration) -> Result<Watermarks, BrokerError> {
        let Shared { handle, source, .. } = &*self.shared;
        let until = Instant::now() + limit;
        let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        // The client asks by itself only for the leaders of what it is reading, which may be nothing: once a broker was
        // restarted, each call would fail by the leader's old epoch, for ever.
        let failed = |error: BrokerError| {
            if error.kind == ErrorKind::Retriable {
                let _ = handle.metadata(Some(&at.topic), left());
            }
            source.explain(error)
        };
        // The high watermark first: where the last stable offset has reached it afterwards, every transaction up
        // to it has ended. The other two are one call, since the client is `read_committed`.
        let high = offset(handle, at, OffsetSpec::Latest, Isolation::Uncommitted, limit).map_err(&failed)?;
        let (low, stable) = handle
            .watermarks(&at.topic, at.partition, left())
            .map_err(|error| failed(broker_error(error, ErrorKind::Retriable)))?;
        Ok(Watermarks { low, stable, high: high.max(stable) })
    }

    fn topic(&self, topic: &Arc<str>, limit: Duration) -> Result<TopicNow, BrokerError> {
        let Shared { handle, source, .. } = &*self.shared;
        let failed = |error| source.explain(broker_error(error, ErrorKind::Retriable));
        let described = handle.describe_topics(std::slice::from_ref(topic), limit).map_err(failed)?;
        match described.into_iter().next() {
            Some((_, Ok(state))) => Ok(TopicNow { id: state.id, partitions: state.partitions }),
            Some((_, Err(error))) => Err(BrokerError { kind: ErrorKind::Retriable, ..failed(error) }),
            None => Err(failed(NativeError::new(code::LOCAL_TIMED_OUT, "an empty answer"))),
        }
    }

    fn warm_up(&self, topics: &[Arc<str>], limit: Duration) {
        let handle = &self.shared.handle;
        let until = Instant::now() + limit;
        let left = || until.saturating_duration_since(Instant::now());
        // Twice, since the first answer comes over the bootstrap connection.
        for _ in 0..2 {
            if handle.metadata(topics.first().map(AsRef::as_ref), left()).is_err() {
                return;
            }
        }
        let Ok(described) = handle.describe_topics(topics, left()) else { return };
        let partitions: Vec<TopicPartition> = described
            .into_iter()
            .filter_map(|(topic, state)| Some((Arc::<str>::from(topic), state.ok()?.partitions)))
            .flat_map(|(topic, count)| {
                (0..count).map(move |partition| TopicPartition { topic: Arc::clone(&topic), partition })
            })
            .collect();
        // One question to each leader. It only has to be asked: whoever needs the answer asks again.
        if !partitions.is_empty() {
            let _ = handle.list_offsets(&partitions, OffsetSpec::Latest, Isolation::Committed, left());
        }
    }
}

/// One offset of one partition.
pub(super) fn offset(
    handle: &Arc<Handle>,
    at: &TopicPartition,
    spec: OffsetSpec,
    isolation: Isolation,
    limit: Duration,
) -> Result<i64, BrokerError> {
    let named = |error: NativeError| {
        let text = format!("offsets of {}-{}: {}", at.topic, at.partition, error.text);
        broker_error(NativeError { text, ..error }, ErrorKind::Retriable)
    };
    let entries = handle.list_offsets(std::slice::from_ref(at), spec, isolation, limit).map_err(named)?;
    let Some(entry) = entries.into_iter().next() else {
        return Err(named(NativeError::new(code::LOCAL_TIMED_OUT, "an empty answer")));
    };
    if entry.code == code::NO_ERROR {
        Ok(entry.offset)
    } else {
        Err(named(NativeError::new(entry.code, super::ffi::describe(entry.code))))
    }
}

/// One partition being read.
struct KafkaQueue {
    /// Before the client.
    batch: Batch,
    at: TopicPartition,
    /// `at`, for messages.
    place: String,
    input: u16,
    /// Where the reading began.
    from: i64,
    /// An error behind records that were handed out before it.
    failed: Option<BrokerError>,
    shared: Arc<Shared>,
}

impl KafkaQueue {
    /// An error in the queue: the client repeats what may pass by itself.
    fn judge(place: &str, source: &Source, error: NativeError) -> Option<BrokerError> {
        if matches!(error.code, code::LOCAL_AUTO_OFFSET_RESET | code::OFFSET_OUT_OF_RANGE) {
            return Some(BrokerError {
                kind: ErrorKind::Hopeless,
                code: "OFFSET_OUT_OF_RANGE".to_owned(),
                text: format!("{place} does not have the offset that is to be read: {}", error.text),
                output: None,
                size: None,
            });
        }
        let text = format!("reading {place}: {}", error.text);
        let judged = broker_error(NativeError { text, ..error.clone() }, ErrorKind::Retriable);
        // A broker that has just started may not know the topic for a moment, and the client goes on with it by itself.
        let passes = judged.is_unknown_topic()
            || matches!(judged.kind, ErrorKind::Retriable | ErrorKind::TimedOut | ErrorKind::Generation);
        if !passes {
            return Some(judged);
        }
        source.error(&error);
        None
    }
}

impl QueuePort for KafkaQueue {
    fn take(
        &mut self,
        max: usize,
        max_bytes: usize,
        into: &mut Vec<RawRecord>,
    ) -> Result<Taken, BrokerError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.shared.astray.load(SeqCst) {
            let text =
                "the client put a record into the wrong queue, so that records may be missing; start anew";
            return Err(broker_error(NativeError::new(code::LOCAL_INCONSISTENT, text), ErrorKind::Fatal));
        }
        let (place, source, failed) = (&self.place, &self.shared.source, &mut self.failed);
        let taken = self.batch.take(self.input, self.from, (max, max_bytes), into, |error| {
            *failed = Self::judge(place, source, error);
            failed.is_none()
        });
        match self.failed.take() {
            Some(error) if taken == Taken::default() => Err(error),
            failed => {
                self.failed = failed;
                Ok(taken)
            }
        }
    }

    #[cfg(all(test, feature = "broker-tests"))]
    fn waiting(&self) -> usize {
        self.batch.waiting() + usize::from(self.failed.is_some())
    }
}

impl Drop for KafkaQueue {
    fn drop(&mut self) {
        let mut opened = self.shared.opened();
        // From here on whatever was fetched is outdated: librdkafka marks records with the assignment's version
        // and hands out none of an older one.
        if let Err(error) = self.shared.handle.unassign_partition(&self.at) {
            self.shared.source.error(&error);
        }
        self.batch.close();
        opened.remove(&self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S6.2a
    #[test]
    fn a_topic_that_is_not_known_is_no_end_of_reading() {
        let role = Role::Reader { group: "demo", kind: ReaderKind::Changelogs };
        let source = Source::new(&ClientSettings::new("nowhere:1"), role);
        let judge = |code| KafkaQueue::judge("words-0", &source, NativeError::new(code, "as the test says"));
        for passing in [code::UNKNOWN_TOPIC_OR_PART, code::LOCAL_UNKNOWN_PARTITION, code::NOT_LEADER] {
            assert!(judge(passing).is_none(), "{passing}");
        }
        for (end, kind) in [
            (code::TOPIC_AUTHORIZATION_FAILED, ErrorKind::Hopeless),
            (code::OFFSET_OUT_OF_RANGE, ErrorKind::Hopeless),
            (code::LOCAL_DESTROY, ErrorKind::Fatal),
        ] {
            assert_eq!(judge(end).map(|error| error.kind), Some(kind), "{end}");
        }
    }
}
