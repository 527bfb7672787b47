//! Transactional producers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ClientSettings;
use super::client::{Role, connect};
use super::errors::{broker_error, record_error, txn_error};
use super::ffi::{Api, Delivery, Event, Handle, List, NativeError, Queue, Topic, code};
use super::group::KafkaGroup;
use super::logging::Source;
use super::offsets::OffsetSender;
use crate::format::ChangelogRecord;
use crate::glue::Outputs;
use crate::port::{BrokerError, ErrorKind, Group, OffsetCommit, Producer, ProducerFactory, Unanswered};

/// How long a new producer may look for brokers before it is handed out as it is.
const WARM_UP: Duration = Duration::from_secs(2);
/// One call of an abort. Failed records count as outstanding until their events are taken, so the calls are
/// short and the events are taken between them.
const ABORT_SLICE: Duration = Duration::from_millis(20);
/// What an event of a failed record is waited for at most.
const EVENT: Duration = Duration::from_millis(1);

/// Makes producers.
pub(super) struct KafkaProducers {
    settings: Arc<ClientSettings>,
}

impl KafkaProducers {
    pub(super) fn new(settings: Arc<ClientSettings>) -> Self {
        Self { settings }
    }
}

impl ProducerFactory for KafkaProducers {
    fn create(&self, transactional_id: &str, warm_up: &str) -> Result<Box<dyn Producer>, BrokerError> {
        let role = Role::Producer { transactional_id };
        let handle = connect(&self.settings, role)?;
        let until = Instant::now() + WARM_UP;
        // Twice: the first answer comes over the bootstrap connection, which is dropped by it; the second over a
        // connection to a broker. A fence on a client without one waits on a timer of half a second. An error is
        // no news here: the fence will say it.
        for _ in 0..2 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || handle.metadata(Some(warm_up), left).is_err() {
                break;
            }
        }
        let mut producer = KafkaProducer {
            events: Queue::main(&handle),
            topics: HashMap::new(),
            source: Source::new(&self.settings, role),
            failed: None,
            offsets: OffsetSender::default(),
            handle,
        };
        producer.drain();
        Ok(Box::new(producer))
    }
}

/// A producer; its client is destroyed when it is dropped, with whatever was queued.
struct KafkaProducer {
    events: Queue,
    topics: HashMap<Arc<str>, Topic>,
    source: Source,
    /// The first delivery error of the running transaction.
    failed: Option<BrokerError>,
    offsets: OffsetSender,
    handle: Arc<Handle>,
}

impl KafkaProducer {
    /// Takes all events that wait; false if there was none.
    fn drain(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.events.poll(Duration::ZERO) {
            any = true;
            self.heard(event);
        }
        any
    }

    fn heard(&mut self, event: Event) {
        let Some(Event::Deliveries(failed)) = self.source.heard(event) else { return };
        for failed in &failed {
            match failed.code {
                // The doing of an abort, not its cause.
                code::LOCAL_PURGE_QUEUE | code::LOCAL_PURGE_INFLIGHT => continue,
                // The broker refuses the whole batch that a record is in; the largest is the one to name.
                code::MSG_SIZE_TOO_LARGE
                    if self.failed.as_ref().is_some_and(|first| smaller(first, failed)) => {}
                _ if self.failed.is_some() => continue,
                _ => {}
            }
            self.failed = Some(record_error(failed, super::ffi::describe(failed.code), &self.handle));
        }
    }

    fn topic(&mut self, name: &Arc<str>) -> Result<(), BrokerError> {
        if !self.topics.contains_key(name) {
            let topic =
                Topic::new(&self.handle, name).map_err(|error| broker_error(error, ErrorKind::Hopeless))?;
            self.topics.insert(Arc::clone(name), topic);
        }
        Ok(())
    }

    /// The queue of the client is full: makes room.
    fn make_room(&mut self) {
        if !self.drain()
            && let Some(event) = self.events.poll(EVENT)
        {
            self.heard(event);
        }
    }

    /// The record that spoilt the transaction, where the error is only that it is spoilt.
    fn cause(&self, error: BrokerError) -> BrokerError {
        match &self.failed {
            Some(failed) if matches!(error.kind, ErrorKind::Abortable | ErrorKind::Hopeless) => {
                failed.clone()
            }
            _ => error,
        }
    }

    fn result(&self, result: Result<(), NativeError>) -> Result<(), BrokerError> {
        result.map_err(|error| self.cause(self.source.explain(txn_error(error, &self.handle))))
    }
}

impl Producer for KafkaProducer {
    fn fence(&mut self, limit: Duration) -> Result<(), BrokerError> {
        let result = self.handle.init_transactions(limit);
        self.drain();
        self.result(result)
    }

    fn begin(&mut self) -> Result<(), BrokerError> {
        self.drain();
        self.failed = None;
        self.result(self.handle.begin_transaction())
    }

    fn produce(&mut self, outputs: &Outputs, topics: &[Arc<str>]) -> Result<(), BrokerError> {
        for name in topics {
            self.topic(name)?;
        }
        let mut from = 0;
        loop {
            let handles: Vec<&Topic> = topics.iter().filter_map(|name| self.topics.get(name)).collect();
            let Err((index, error)) = self.handle.produce(&handles, outputs, from) else { return Ok(()) };
            if error.code == code::LOCAL_QUEUE_FULL {
                from = index;
                self.make_room();
                continue;
            }
            let record = &outputs.records[index];
            let part =
                |range: &Option<std::ops::Range<usize>>| range.as_ref().map_or(0, ExactSizeIterator::len);
            let refused = Delivery {
                code: error.code,
                tag: index + 1,
                topic: topics
                    .get(usize::from(record.topic))
                    .map_or_else(String::new, |name| name.to_string()),
                size: part(&record.key) + part(&record.value),
            };
            self.drain();
            return Err(self.cause(record_error(&refused, error.text, &self.handle)));
        }
    }

    fn produce_changelog(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        changes: &[ChangelogRecord],
    ) -> Result<(), BrokerError> {
        self.topic(topic)?;
        let mut pending: Vec<usize> = (0..changes.len()).collect();
        while !pending.is_empty() {
            let Some(native) = self.topics.get(topic) else { return Ok(()) };
            let queued = self.handle.produce_changes(native, partition, changes, &mut pending);
            if let Err((index, error)) = queued {
                let size = changes.get(index).map_or(0, |change| {
                    change.key.len() + change.value.as_ref().map_or(0, |value| value.len())
                });
                let refused = Delivery { code: error.code, tag: 0, topic: topic.to_string(), size };
                self.drain();
                return Err(self.cause(record_error(&refused, error.text, &self.handle)));
            }
            if !pending.is_empty() {
                self.make_room();
            }
        }
        Ok(())
    }

    fn send_offsets(
        &mut self,
        offsets: &[OffsetCommit],
        group: &dyn Group,
        limit: Duration,
    ) -> Result<(), BrokerError> {
        let Some(group) = group.as_any().downcast_ref::<KafkaGroup>() else {
            let text = "the group is not one of this cluster".to_owned();
            return Err(BrokerError {
                kind: ErrorKind::Hopeless,
                code: "_INVALID_ARG".to_owned(),
                text,
                output: None,
                size: None,
            });
        };
        let result = self.offsets.send(&self.handle, offset_list(offsets)?, group.handle(), limit)?;
        self.drain();
        self.result(result)
    }

    fn commit(&mut self, slice: Duration) -> Result<(), BrokerError> {
        self.drain();
        #[cfg(feature = "crash-points")]
        if crate::crash::is_armed(crate::crash::CrashPoint::BeforeEndTxn) {
            // The commit itself would first send what is queued.
            while self.handle.queued() > 0 {
                self.make_room();
            }
        }
        crash_point!(BeforeEndTxn);
        let result = self.handle.commit_transaction(slice);
        self.drain();
        self.result(result)
    }

    fn abort(&mut self, limit: Duration) -> Result<(), BrokerError> {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let result = self.handle.abort_transaction(ABORT_SLICE.min(left.max(EVENT)));
            let result = self.result(result);
            // One event at a time would leave others, each of which holds the next slice up.
            while let Some(event) = self.events.poll(EVENT) {
                self.heard(event);
            }
            match result {
                Err(error)
                    if matches!(error.kind, ErrorKind::Retriable | ErrorKind::TimedOut)
                        && Instant::now() < until => {}
                result => {
                    return result;
                }
            }
        }
    }

    fn delivery_error(&mut self) -> Option<BrokerError> {
        self.drain();
        self.failed.clone()
    }

    fn unanswered(&self) -> Unanswered {
        let watch = self.handle.watch();
        Unanswered {
            lost_txn: watch.lost(Api::TxnOffsetCommit) + watch.lost(Api::EndTxn),
            open_txn: watch.open(Api::TxnOffsetCommit) + watch.open(Api::EndTxn),
            lost_produce: watch.lost(Api::Produce),
            open_produce: watch.open(Api::Produce),
            sent_end_txn: watch.sent(Api::EndTxn),
        }
    }

    fn serve(&mut self) {
        self.drain();
    }
}

/// True if both are too large and `first` is the smaller one.
fn smaller(first: &BrokerError, other: &Delivery) -> bool {
    first.code == "MSG_SIZE_TOO_LARGE" && first.size < Some(other.size)
}

/// Offsets with their metadata, as a native list.
pub(super) fn offset_list(offsets: &[OffsetCommit]) -> Result<List, BrokerError> {
    let mut list = List::new();
    for commit in offsets {
        list.push(&commit.at, commit.offset, Some(&commit.metadata))
            .map_err(|error| broker_error(error, ErrorKind::Hopeless))?;
    }
    Ok(list)
}
