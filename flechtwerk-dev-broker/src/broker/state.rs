//! All that the broker knows, behind one lock, and what follows from a change of it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::clock::{Clock, millis};
use super::nodes::Nodes;
use super::settings::Settings;
use super::topics::Topics;
use super::{BrokerError, wall};
use crate::coordinator::{Answer, Coordinators, Effects, Millis, Now, Ticket, WriteMarkers};
use crate::fault::Fault;
use crate::log::{AppendError, CompactOptions, CompactReport};
use crate::storage::{Storage, StorageError};

/// How often producers that have fallen silent are looked for, and after how long they are forgotten, as in Kafka.
const PRODUCER_CHECK: Duration = Duration::from_secs(600);
const PRODUCER_EXPIRATION_MS: i64 = 86_400_000;

/// The state of the broker. Everything in it is synchronous.
pub(crate) struct State {
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    pub(crate) nodes: Nodes,
    pub(crate) topics: Topics,
    pub(crate) storage: Storage,
    pub(crate) coordinators: Coordinators,
    waiting: HashMap<Ticket, oneshot::Sender<Answer>>,
    last_ticket: u64,
    /// Transactions whose markers a fault keeps back, by transactional id.
    held_markers: Vec<(String, Fault)>,
    kept_back: Vec<WriteMarkers>,
    next_compaction: Option<Millis>,
    next_producer_check: Millis,
    /// Why nothing may be answered any more: what was done could not be kept.
    failure: Option<String>,
}

impl State {
    pub(crate) fn new(
        clock: Clock,
        settings: Settings,
        nodes: Nodes,
        topics: Topics,
        storage: Storage,
        coordinators: Coordinators,
    ) -> State {
        let next_compaction =
            settings.compact_every.map(|every| clock.now().since_start.after(millis(every)));
        State {
            clock,
            settings,
            nodes,
            topics,
            storage,
            coordinators,
            waiting: HashMap::new(),
            last_ticket: 0,
            held_markers: Vec::new(),
            kept_back: Vec::new(),
            next_compaction,
            next_producer_check: millis(PRODUCER_CHECK),
            failure: None,
        }
    }

    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// A name for a request that waits, and where its answer will come.
    pub(crate) fn ticket(&mut self) -> (Ticket, oneshot::Receiver<Answer>) {
        self.last_ticket = self.last_ticket.wrapping_add(1);
        let ticket = Ticket(self.last_ticket);
        let (sender, receiver) = oneshot::channel();
        self.waiting.insert(ticket, sender);
        (ticket, receiver)
    }

    /// Carries out what a coordinator wants done, and what follows from that.
    pub(crate) fn settle(&mut self, mut effects: Effects) {
        loop {
            self.keep(&mut effects);
            if self.failure.is_some() {
                return;
            }
            for answer in effects.answers.drain(..) {
                if let Some(waiting) = self.waiting.remove(&answer.ticket()) {
                    // Nobody may be there any more: the connection was closed meanwhile.
                    let _ = waiting.send(answer);
                }
            }
            let decided: Vec<WriteMarkers> = effects.markers.drain(..).collect();
            if decided.is_empty() && effects.records.is_empty() && effects.answers.is_empty() {
                return;
            }
            for markers in decided {
                match self.held_markers.iter().find(|(id, _)| *id == markers.transactional_id) {
                    None => self.complete(&markers, &mut effects),
                    Some((id, fault)) => {
                        tracing::info!(transactional_id = id, "fault: hold the markers");
                        fault.count();
                        self.kept_back.push(markers);
                    }
                }
            }
        }
    }

    /// The journal comes first: nothing that is seen outside may be forgotten by a restart.
    fn keep(&mut self, effects: &mut Effects) {
        if effects.records.is_empty() {
            return;
        }
        let records: Vec<_> = effects.records.drain(..).map(|record| record.encode()).collect();
        let kept = self.storage.append_journal(&records).and_then(|()| {
            if !self.storage.journal_wants_snapshot() {
                return Ok(());
            }
            let all: Vec<_> = self.coordinators.snapshot().iter().map(|record| record.encode()).collect();
            self.storage.rewrite_journal(&all)
        });
        if let Err(error) = kept {
            self.fail(&error);
        }
    }

    /// Something was changed and can't be kept. As a Kafka whose log folders have failed, the broker ends: what it has not answered
    /// may be forgotten, and a restart goes on from what was kept.
    fn fail(&mut self, error: &dyn std::error::Error) {
        let why = format!(
            "the broker ends, for it can't keep its state: {}; make room or mend the folder, and start it again",
            chain(error)
        );
        tracing::error!("{why}");
        self.failure.get_or_insert(why);
    }

    /// Why the broker has to end, if it has to.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn complete(&mut self, markers: &WriteMarkers, effects: &mut Effects) {
        let now = self.now();
        for at in &markers.partitions {
            // A topic that was deleted meanwhile needs no marker.
            let Some(partition) = self.topics.partition_mut(&at.topic, at.partition) else { continue };
            let producer = markers.producer;
            let appended =
                partition.log.append_marker(producer.id, producer.epoch, markers.commit, 0, now.wall);
            if let Err(AppendError::Storage(error)) = &appended {
                // The journal must not say that they are written.
                return self.fail(error);
            }
            if let Err(error) = appended {
                tracing::error!(error = %chain(&error), topic = at.topic, partition = at.partition,
                    "a transaction marker can't be written");
            }
            partition.wake();
        }
        for group in &markers.groups {
            let groups = &mut self.coordinators.groups;
            groups.complete_txn_offsets(now, group, markers.producer, markers.commit, effects);
        }
        self.coordinators.transactions.markers_written(now, markers, effects);
    }

    /// Keeps the markers of a transactional id back from now on: its transactions stay decided but not completed.
    pub(crate) fn hold_markers(&mut self, transactional_id: &str, fault: Fault) {
        self.held_markers.push((transactional_id.to_owned(), fault));
    }

    /// Writes what was kept back.
    pub(crate) fn release_markers(&mut self, transactional_id: &str) {
        if let Some(position) = self.held_markers.iter().position(|(id, _)| id == transactional_id) {
            self.held_markers.swap_remove(position);
        }
        if self.held_markers.iter().any(|(id, _)| id == transactional_id) {
            return;
        }
        let (due, kept) = std::mem::take(&mut self.kept_back)
            .into_iter()
            .partition(|kept| kept.transactional_id == transactional_id);
        self.kept_back = kept;
        self.settle(Effects { markers: due, ..Effects::new() });
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self) {
        let now = self.now();
        let mut effects = Effects::new();
        self.coordinators.groups.tick(now, &mut effects);
        self.coordinators.transactions.tick(now, &mut effects);
        self.settle(effects);
        if self.next_compaction.is_some_and(|at| at <= now.since_start) {
            self.compact_all();
            self.next_compaction =
                self.settings.compact_every.map(|every| self.now().since_start.after(millis(every)));
        }
        if self.next_producer_check <= now.since_start {
            self.topics.expire_producers(now.wall.saturating_sub(PRODUCER_EXPIRATION_MS));
            self.next_producer_check = now.since_start.after(millis(PRODUCER_CHECK));
        }
    }

    /// When something is due next.
    pub(crate) fn next_deadline(&self) -> Instant {
        let deadlines = [
            self.coordinators.groups.next_deadline(),
            self.coordinators.transactions.next_deadline(),
            self.next_compaction,
            Some(self.next_producer_check),
        ];
        let next = deadlines.into_iter().flatten().min().unwrap_or(self.next_producer_check);
        self.clock.instant(next)
    }

    fn compact_all(&mut self) {
        let names: Vec<String> = self
            .topics
            .iter()
            .filter(|(_, topic)| topic.compacted())
            .map(|(name, _)| name.to_owned())
            .collect();
        for name in names {
            if let Err(error) = self.compact(&name, Reach::ClosedSegments) {
                tracing::error!(error = %chain(&error), topic = name, "compaction failed");
            }
        }
    }

    /// Compacts all partitions of a topic.
    pub(crate) fn compact(&mut self, name: &str, reach: Reach) -> Result<CompactReport, BrokerError> {
        let topic =
            self.topics.get_mut(name).ok_or_else(|| BrokerError::UnknownTopic { topic: name.to_owned() })?;
        if !topic.compacted() {
            return Err(BrokerError::NotCompacted { topic: name.to_owned() });
        }
        let mut total = CompactReport::default();
        for partition in &mut topic.partitions {
            let active_from = match reach {
                Reach::ClosedSegments => Some(partition.log.active_segment()),
                Reach::AllButLastBatch => None,
            };
            let report = partition.log.compact(wall(), CompactOptions { active_from })?;
            total.bytes_before = total.bytes_before.saturating_add(report.bytes_before);
            total.bytes_after = total.bytes_after.saturating_add(report.bytes_after);
            total.records_removed = total.records_removed.saturating_add(report.records_removed);
            total.markers_removed = total.markers_removed.saturating_add(report.markers_removed);
            total.opaque_batches = total.opaque_batches.saturating_add(report.opaque_batches);
            partition.wake();
        }
        if total.opaque_batches > 0 {
            tracing::warn!(
                topic = name,
                batches = total.opaque_batches,
                "batches compressed by something else than gzip or snappy were left as they are"
            );
        }
        Ok(total)
    }
}

/// What a compaction may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As Kafka's cleaner: everything before the active segment (`segment.bytes`, `segment.ms`).
    ClosedSegments,
    /// As if segments were as small as can be.
    AllButLastBatch,
}

/// An error with all its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

impl From<StorageError> for super::Refusal {
    fn from(error: StorageError) -> super::Refusal {
        tracing::error!(error = %chain(&error), "the data folder can't be written");
        super::Refusal::new(crate::ErrorCode::KAFKA_STORAGE_ERROR, chain(&error))
    }
}
