//! The thread of one task that owns its transactional producer and makes every blocking call: the cluster never
//! holds up the async side, where user code runs.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::batch::ClosedBatch;
use super::context::{Cancel, StageContext};
use super::error::{Failure, chain};
use super::host;
use super::messages;
use super::patience::Patience;
use super::restore::{Unrestored, restore};
use super::transaction::{self, Transaction};
use crate::observe::names;
use crate::port::{Committed, Producer, Store, StoreError, StoreId, TopicPartition};
use crate::task::{BatchId, CommittedInput, Event, InputRange, Outcome, Stamp, Stop};

mod fence;
#[cfg(test)]
mod tests;

/// How often an idle producer's logs and events are served.
const SERVE_INTERVAL: Duration = Duration::from_millis(250);
/// Time limit of one question to the cluster.
const ASK_LIMIT: Duration = Duration::from_secs(5);
/// Pause before a batch is sent again that was refused because the group moved on.
const REDO_PAUSE: Duration = Duration::from_millis(20);

/// What the thread is asked to do; each but `DropProducer` is answered with a report.
pub(super) enum Work {
    /// `unwanted`: something has overtaken it.
    Fence {
        unwanted: Cancel,
    },
    DropProducer,
    ReadOffsets,
    ReadChangelogEnd,
    OpenStore {
        wiped: bool,
    },
    Restore {
        end: i64,
        stamp: Option<String>,
    },
    ReadRanges,
    Send {
        batch: Arc<ClosedBatch>,
        stamp: Stamp,
        positions: Vec<i64>,
        paced: bool,
    },
    Apply {
        batch: Arc<ClosedBatch>,
        stamp: Stamp,
    },
    Quit {
        flush: bool,
    },
}

/// What comes back.
pub(super) enum Report {
    Event(Event),
    /// What has become of a batch. A committed one is in the store by then, or has failed there, and the event says which: the
    /// answer to the command that the machine is about to give.
    Sent {
        id: BatchId,
        outcome: Outcome,
        applied: Option<Event>,
    },
    /// The store is open; comes before [`Event::StoreOpened`].
    Store(Arc<dyn Store>),
    /// The process must stop.
    Failed(Failure),
    /// The thread is gone, and with it producer and store.
    Gone,
}

/// The async side's end of the thread.
pub(super) struct Worker {
    work: Sender<Work>,
    pub(super) cancel: Cancel,
    /// Ends the fence that was asked for last.
    fencing: Cancel,
}

impl Worker {
    /// Starts the thread of a task.
    pub(super) fn start(
        context: Arc<StageContext>,
        partition: i32,
        reports: UnboundedSender<Report>,
    ) -> std::io::Result<Worker> {
        let (work, queue) = channel();
        let cancel = Cancel::default();
        let thread = Thread {
            inputs: context.input_partitions(partition),
            context,
            partition,
            cancel: cancel.clone(),
            reports,
            producer: None,
            store: None,
            patience: Patience::default(),
            early: None,
            unknown: None,
        };
        let name = format!("{}/{partition}", thread.context.info.name);
        host::thread(name, move || thread.run(&queue))?;
        Ok(Worker { work, cancel, fencing: Cancel::default() })
    }

    /// Asks for a fence. One that is still tried is given up for it.
    pub(super) fn fence(&mut self) {
        self.fencing.cancel();
        self.fencing = Cancel::default();
        self.ask(Work::Fence { unwanted: self.fencing.clone() });
    }

    /// Asks for the end of the producer, and of a fence that is still tried: nobody waits for it any more.
    pub(super) fn drop_producer(&mut self) {
        self.fencing.cancel();
        self.ask(Work::DropProducer);
    }

    /// Hands work over. A thread that has gone has said so, or reports a failure: nothing is lost by ignoring it.
    pub(super) fn ask(&self, work: Work) {
        let _ = self.work.send(work);
    }
}

/// What the group has committed, as the state machine is told.
fn positions(committed: Vec<Committed>) -> Vec<CommittedInput> {
    let input = |one: Committed| CommittedInput { offset: one.offset, metadata: one.metadata };
    committed.into_iter().map(input).collect()
}

struct Thread {
    context: Arc<StageContext>,
    partition: i32,
    inputs: Vec<TopicPartition>,
    cancel: Cancel,
    reports: UnboundedSender<Report>,
    producer: Option<Box<dyn Producer>>,
    store: Option<Arc<dyn Store>>,
    /// What became of the last transactions. Of the thread, and so of the task, however often that starts anew.
    patience: Patience,
    /// What was committed before the fence; kept only by a flaw.
    early: Option<Vec<CommittedInput>>,
    /// Since when every transaction has met a topic that a broker does not know.
    unknown: Option<Instant>,
}

impl Thread {
    fn run(mut self, queue: &Receiver<Work>) {
        let mut quit = false;
        while !quit {
            let work = match host::receive(queue, SERVE_INTERVAL) {
                Ok(work) => work,
                Err(RecvTimeoutError::Timeout) => {
                    self.serve();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            quit = matches!(work, Work::Quit { .. });
            let sending = match &work {
                Work::Send { batch, .. } => Some(batch.id),
                _ => None,
            };
            if let Err(failure) = self.carry_out(work) {
                let _ = self.reports.send(Report::Failed(failure));
                // After the failure, so that nothing is done about it: the task must not await a commit that has ended.
                if let Some(id) = sending {
                    let outcome = Outcome::Dead { fenced: false, error: "the process stops".into() };
                    self.report(Event::Sent { id, outcome });
                }
            }
        }
        // A transaction that is still open is left to the next owner's fence.
        self.producer = None;
        self.store = None;
        let _ = self.reports.send(Report::Gone);
    }

    fn report(&self, event: Event) {
        // Nobody listens any more once the task is over.
        let _ = self.reports.send(Report::Event(event));
    }

    fn serve(&mut self) {
        if let Some(producer) = &mut self.producer {
            producer.serve();
        }
    }

    fn carry_out(&mut self, work: Work) -> Result<(), Failure> {
        match work {
            Work::Fence { unwanted } => self.fence(&unwanted),
            Work::DropProducer => {
                self.producer = None;
                Ok(())
            }
            Work::ReadOffsets => self.read_offsets(),
            Work::ReadChangelogEnd => self.read_changelog_end(),
            Work::OpenStore { wiped } => self.open_store(wiped),
            Work::Restore { end, stamp } => self.restore(end, stamp.as_deref()),
            Work::ReadRanges => self.read_ranges(),
            Work::Send { batch, stamp, positions, paced } => self.send(batch, &stamp, &positions, paced),
            Work::Apply { batch, stamp } => {
                let answer = self.apply(batch, &stamp)?;
                self.report(answer);
                Ok(())
            }
            Work::Quit { flush } => {
                if flush
                    && let Some(store) = &self.store
                    && let Err(error) = store.flush()
                {
                    tracing::warn!(
                        stage = self.context.info.name,
                        partition = self.partition,
                        "the store could not be flushed and will be restored at the next start: {}",
                        chain(&error)
                    );
                }
                Ok(())
            }
        }
    }

    fn read_offsets(&mut self) -> Result<(), Failure> {
        let what = messages::committed_offsets(&self.context, self.partition);
        let answer = self
            .context
            .retry(&what, &self.cancel, || self.context.group.committed(&self.inputs, ASK_LIMIT))?;
        if let Some(committed) = answer.map(positions) {
            let committed = self.early.take().unwrap_or(committed);
            self.report(Event::Offsets(committed));
        }
        Ok(())
    }

    /// The end counts only once it is stable: an open transaction of another producer holds it back.
    fn read_changelog_end(&mut self) -> Result<(), Failure> {
        let context = self.context.clone();
        let (Some(at), Some(reader)) = (self.changelog(), &context.changelogs) else { return Ok(()) };
        let mut said = host::now();
        let mut waiting = false;
        loop {
            let answer = context.retry(&format!("read the end of changelog {at}"), &self.cancel, || {
                reader.watermarks(&at, ASK_LIMIT)
            })?;
            let Some(marks) = answer else { return Ok(()) };
            if marks.stable >= marks.high || flawed!(NoWaitForStable) {
                names::changelog_blocked(context.info.name, self.partition).set(0.0);
                self.check_changelog()?;
                self.report(Event::ChangelogEnd(marks.high));
                return Ok(());
            }
            if !waiting || host::since(said) > Duration::from_secs(10) {
                waiting = true;
                said = host::now();
                names::changelog_blocked(context.info.name, self.partition).set(1.0);
                tracing::warn!(
                    stage = context.info.name,
                    topic = %at.topic,
                    partition = self.partition,
                    "an open transaction of another producer holds the changelog back at {at} offset {}, before \
                     its end {}: waiting until it is committed, aborted or timed out{}",
                    marks.stable,
                    marks.high,
                    messages::HANGING
                );
            }
            self.serve();
            if self.cancel.is_cancelled() {
                return Ok(());
            }
            host::sleep(Duration::from_millis(20));
        }
    }

    /// The changelog must still be the one that was there when the process started (S7.3c): one that was made anew since
    /// is empty, and restoring it would lose the state without a word. Asked after its end was read, so that the end is
    /// that of the topic which is found.
    fn check_changelog(&self) -> Result<(), Failure> {
        let context = &self.context;
        let (Some(changelog), Some(reader)) = (&context.changelog, &context.changelogs) else {
            return Ok(());
        };
        let found =
            context.retry(&format!("read the id of changelog {}", changelog.topic), &self.cancel, || {
                reader.topic_id(&changelog.topic, ASK_LIMIT)
            })?;
        match found {
            Some(id) if id != changelog.id => {
                let why = Stop::OtherChangelog { named: changelog.id.clone() };
                Err(messages::failure(context, self.partition, &why))
            }
            _ => Ok(()),
        }
    }

    fn show_size(&self, store: &dyn Store) {
        let (stage, size) = (self.context.info.name, store.size());
        names::store_bytes(stage, self.partition).set(size.bytes as f64);
        names::store_entries(stage, self.partition).set(size.entries as f64);
        if self.context.info.takes_timers() {
            names::timers_pending(stage, self.partition).set(size.timers as f64);
        }
    }

    fn changelog(&self) -> Option<TopicPartition> {
        let changelog = self.context.changelog.as_ref()?;
        Some(TopicPartition { topic: changelog.topic.clone(), partition: self.partition })
    }

    fn open_store(&mut self, wiped: bool) -> Result<(), Failure> {
        if wiped || self.store.is_none() {
            self.store = None;
            let id = StoreId {
                application_id: self.context.names.application_id.to_string(),
                partition: self.partition,
            };
            match self.context.stores.open(&id, wiped) {
                Ok(store) => self.store = Some(store),
                Err(error) => return self.store_failed(&error),
            }
        }
        let Some(store) = self.store.clone() else { return Ok(()) };
        match store.stamp() {
            Ok(stamp) => {
                self.show_size(&*store);
                let _ = self.reports.send(Report::Store(store));
                self.report(Event::StoreOpened { stamp });
                Ok(())
            }
            Err(error) => self.store_failed(&error),
        }
    }

    fn store_failed(&mut self, error: &StoreError) -> Result<(), Failure> {
        let event = self.store_error(error)?;
        self.report(event);
        Ok(())
    }

    /// A folder that another process holds is not broken: wiping it would destroy that process's state.
    fn store_error(&self, error: &StoreError) -> Result<Event, Failure> {
        if error.in_use {
            return Err(messages::store_failure(self.context.info.name, error));
        }
        Ok(Event::StoreFailed { error: chain(error) })
    }

    fn restore(&mut self, end: i64, stamp: Option<&str>) -> Result<(), Failure> {
        let (Some(at), Some(store)) = (self.changelog(), self.store.clone()) else { return Ok(()) };
        let context = self.context.clone();
        let cancel = self.cancel.clone();
        match restore(&context, &*store, &at, end, stamp, &cancel, || self.serve()) {
            Ok(empty) => {
                self.show_size(&*store);
                self.report(Event::Restored { empty });
            }
            Err(Unrestored::Cancelled) => {}
            Err(Unrestored::Store(error)) => return self.store_failed(&error),
            Err(Unrestored::Failed(failure)) => return Err(failure),
        }
        Ok(())
    }

    fn read_ranges(&mut self) -> Result<(), Failure> {
        if self.context.info.extractor.is_some() {
            // The offset of a lease is always zero, and never a position (S10.3).
            let lease = InputRange { low: 0, stable: 0, high: 0 };
            self.report(Event::Ranges(vec![lease; self.inputs.len()]));
            return Ok(());
        }
        let mut ranges = Vec::with_capacity(self.inputs.len());
        for at in &self.inputs {
            let answer =
                self.context.retry(&format!("read the offsets of input {at}"), &self.cancel, || {
                    self.context.inputs.watermarks(at, ASK_LIMIT)
                })?;
            let Some(marks) = answer else { return Ok(()) };
            ranges.push(InputRange { low: marks.low, stable: marks.stable, high: marks.high });
        }
        self.report(Event::Ranges(ranges));
        Ok(())
    }

    fn send(
        &mut self,
        batch: Arc<ClosedBatch>,
        stamp: &Stamp,
        positions: &[i64],
        paced: bool,
    ) -> Result<(), Failure> {
        let (stage, partition) = (self.context.info.name, self.partition);
        if paced {
            host::sleep(REDO_PAUSE);
        }
        let Some(producer) = &mut self.producer else {
            let outcome = Outcome::Dead { fenced: false, error: "the producer is gone".into() };
            self.report(Event::Sent { id: batch.id, outcome });
            return Ok(());
        };
        let transaction = Transaction {
            partition,
            outputs: &batch.outputs,
            changes: batch.layer.changes(),
            positions,
            stamp,
            page: batch.page.as_deref(),
        };
        if flawed!(StoreBeforeCommit)
            && let Some(store) = &self.store
            && let Ok(Some(before)) = store.stamp()
        {
            // Under the stamp that it has: a later one would give it away.
            let _ = store.apply(transaction.changes, &before);
        }
        let began = host::now();
        let outcome =
            transaction::send(&self.context, &mut **producer, &transaction, &self.cancel, &mut self.unknown)?;
        let took = host::since(began);
        self.patience.check_duration(&self.context, &outcome, took, &batch)?;
        if self.unknown.is_none() {
            self.patience.check_progress(&self.context, partition, &outcome, took, &self.cancel)?;
        }
        match &outcome {
            Outcome::Committed { suspect } => {
                names::commit_seconds(stage, partition).record(took.as_secs_f64());
                names::commits(stage, partition).increment(1);
                if *suspect {
                    names::suspects(stage, partition).increment(1);
                    tracing::warn!(
                        stage,
                        partition,
                        "a request of a committed transaction was never answered: the producer is replaced"
                    );
                }
            }
            Outcome::Aborted { why, suspect } => {
                names::aborts(stage, partition).increment(1);
                if *suspect {
                    names::suspects(stage, partition).increment(1);
                }
                tracing::info!(stage, partition, "a transaction was aborted: {why:?}");
            }
            Outcome::Dead { error, .. } | Outcome::Unknown { error, .. } => {
                names::suspects(stage, partition).increment(1);
                tracing::warn!(
                    stage,
                    partition,
                    "the outcome of a transaction is settled by its stamps: {error}"
                );
            }
        }
        let id = batch.id;
        // Of a task that is over nothing is written: its partition may have another one soon.
        let counts = matches!(outcome, Outcome::Committed { .. }) && !self.cancel.is_cancelled();
        let applied = if counts { Some(self.apply(batch, stamp)?) } else { None };
        let _ = self.reports.send(Report::Sent { id, outcome, applied });
        Ok(())
    }

    /// The local store is written only now that the commit is known to have succeeded (S3.4). Gives what to report of it.
    fn apply(&mut self, batch: Arc<ClosedBatch>, stamp: &Stamp) -> Result<Event, Failure> {
        if let Some(store) = &self.store {
            crash_point!(BeforeStoreWrite);
            if let Err(error) =
                store.apply_over(batch.layer.changes(), batch.layer.timers(), &stamp.to_string())
            {
                return self.store_error(&error);
            }
            crash_point!(AfterStoreWrite);
            self.show_size(&**store);
        }
        let id = batch.id;
        // Before the report: the task uses its memory again.
        drop(batch);
        Ok(Event::Applied { id })
    }
}
