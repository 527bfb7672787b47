//! Tables: each read whole before any stage of the process joins its group, once for all stages that take it, and kept up
//! to date from then on (S9.1).
//!
//! A thread for each table takes what its partitions have, and publishes a version of the map after each turn. A version
//! is a persistent map: making one costs what has changed, and whoever holds an older one keeps it.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::context::Cancel;
use super::error::{Failure, chain};
use super::messages::outcome;
use super::schemas::Asking;
use super::stage::Notice;
use super::supervisor::Plan;
use super::topic_watch::Count;
use super::whole::{Open, Turn, Whole};
use crate::glue::{
    AnyTable, Env, FailureKind, RawRecord, RecordPart, Refused, StageInfo, TableInfo, panicked,
};
use crate::observe::{Restores, names};
use crate::port::{Reader, ReaderKind};

/// What it means that a table has more partitions than it had.
const GROWN: &str = "keys have moved to other partitions, and rows would stay as they are for ever; start again: it is read whole then";
/// How long a thread may take to end.
const END_LIMIT: Duration = Duration::from_secs(2);

/// A table that a stage takes.
#[derive(Clone)]
pub(crate) struct TablePlan {
    /// Its topic in the cluster.
    pub(crate) topic: Arc<str>,
    pub(crate) info: &'static TableInfo,
    pub(crate) partitions: i32,
}

/// The last version of a table.
type Cell = Arc<Mutex<Arc<dyn Any + Send + Sync>>>;

fn last(cell: &Cell) -> Arc<dyn Any + Send + Sync> {
    cell.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The tables of the process.
#[derive(Default)]
pub(super) struct Tables {
    /// By the topic's name in the code.
    cells: BTreeMap<&'static str, Cell>,
    threads: Vec<JoinHandle<()>>,
    cancel: Cancel,
    /// How many are not read whole yet.
    unread: Arc<AtomicUsize>,
}

impl Tables {
    /// Starts reading all tables of the plan, each once.
    pub(super) fn start(&mut self, plan: &Plan, sender: &Sender<Notice>) -> Result<(), Failure> {
        let mut reader: Option<Arc<dyn Reader>> = None;
        for stage in &plan.stages {
            for table in &stage.tables {
                if self.cells.contains_key(table.info.topic.name) {
                    continue;
                }
                let reader = match &reader {
                    Some(reader) => reader.clone(),
                    None => {
                        let application_id = &stage.names.application_id;
                        let made =
                            plan.clients.reader(application_id, ReaderKind::Tables).map_err(|error| {
                                Failure::broker(stage.stage.info().name, "make a reader", &error)
                            })?;
                        reader.insert(made).clone()
                    }
                };
                self.start_one(plan, table, reader, sender)?;
            }
        }
        Ok(())
    }

    fn start_one(
        &mut self,
        plan: &Plan,
        table: &TablePlan,
        reader: Arc<dyn Reader>,
        sender: &Sender<Notice>,
    ) -> Result<(), Failure> {
        let filled = (table.info.make)(table.partitions);
        let cell = Arc::new(Mutex::new(filled.version()));
        self.cells.insert(table.info.topic.name, cell.clone());
        self.unread.fetch_add(1, Ordering::SeqCst);
        let taken_by: Vec<&'static str> = plan
            .stages
            .iter()
            .filter(|stage| stage.names.tables.contains(&table.topic))
            .map(|stage| stage.stage.info().name)
            .collect();
        let mut filling = Filling { topic: table.topic.clone(), taken_by, table: filled, cell };
        let (types, partitions) = ([table.info.topic], table.partitions);
        let (schemas, limit) = (plan.schemas.clone(), plan.limits.broker_timeout);
        let (restores, unread, sender) = (plan.restores.clone(), self.unread.clone(), sender.clone());
        let cancel = self.cancel.clone();
        let spawned = std::thread::Builder::new().name("table".into()).spawn(move || {
            let read = || unread.fetch_sub(1, Ordering::SeqCst);
            let topics = [filling.topic.clone()];
            let who = filling.to_string();
            let asking = Asking { schemas: schemas.as_ref(), who: &who, limit, cancel: &cancel };
            let count = Count { partitions, grown: GROWN.to_owned() };
            let open = Open { reader: &reader, topics: &topics, types: &types, count };
            let ended = catch_unwind(AssertUnwindSafe(|| filling.run(open, &asking, &restores, read)));
            let failure = match ended {
                Ok(Ok(())) => return,
                Ok(Err(failure)) => failure,
                Err(panic) => {
                    let failure = filling.panicked(panic);
                    // What panicked may do so again when it is dropped.
                    std::mem::forget(filling);
                    failure
                }
            };
            // The supervisor outlives its tables.
            let _ = sender.send(Notice::Failed(failure));
        });
        self.threads.push(spawned.map_err(|error| {
            Failure::new(format!("table {}: can't start a thread to read it: {error}", table.topic))
        })?);
        Ok(())
    }

    /// Every table is whole.
    pub(super) fn are_read(&self) -> bool {
        self.unread.load(Ordering::SeqCst) == 0
    }

    /// What a stage shares: what is in `env`, and its tables.
    pub(super) fn of(&self, info: &StageInfo, env: Env) -> Shared {
        let cells = info.tables().filter_map(|table| self.cells.get(table.topic.name).cloned());
        Shared { env: Mutex::new(env), tables: cells.collect() }
    }

    /// Ends the reading.
    pub(super) fn stop(mut self) {
        // The process ends, and freeing a large table would hold it up. So would a row whose `Drop` panics.
        std::mem::forget(std::mem::take(&mut self.cells));
        self.cancel.cancel();
        let until = Instant::now() + END_LIMIT;
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if Instant::now() >= until {
                tracing::warn!("a table's thread has not ended in time and is left behind");
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What all tasks of a stage look at.
#[derive(Default)]
pub(crate) struct Shared {
    /// The resources; empty when the process ends.
    env: Mutex<Env>,
    tables: Vec<Cell>,
}

impl Shared {
    fn env(&self) -> MutexGuard<'_, Env> {
        self.env.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks have ended, and the resources are to be closed: threads that only observe and may still look at their stage for
    /// a moment don't hold them.
    #[cfg(feature = "kafka")]
    pub(super) fn let_go(&self) {
        *self.env() = Env::default();
    }

    /// The resources, and each table as it is now.
    pub(super) fn now(&self) -> Env {
        let mut env = self.env().clone();
        self.tables.iter().for_each(|cell| env.put(last(cell)));
        env
    }
}

/// One table, in its thread.
struct Filling {
    topic: Arc<str>,
    /// The stages that take it, for messages.
    taken_by: Vec<&'static str>,
    table: Box<dyn AnyTable>,
    cell: Cell,
}

impl Filling {
    /// Reads until it is cancelled; `read` is called once, when the table is whole.
    fn run(
        &mut self,
        open: Open<'_>,
        asking: &Asking<'_>,
        restores: &Restores,
        read: impl FnOnce() -> usize,
    ) -> Result<(), Failure> {
        let Some(mut whole) = Whole::open(open, asking)? else { return Ok(()) };
        tracing::info!(table = %self.topic, offsets = whole.left(), "reading");
        let progress = restores.begin_table(&self.topic, whole.left());
        // Rows are made of the last record of each key, hence only at the end of the first reading.
        let advance = |turn: Turn| progress.advance(turn.records as u64, turn.bytes as u64, turn.left);
        if !whole.read(|record| self.take(record), advance)? {
            return Ok(());
        }
        self.publish()?;
        drop(progress);
        read();
        while !whole.is_cancelled() {
            if whole.follow(|record| self.take(record))? > 0 {
                self.publish()?;
            }
        }
        Ok(())
    }

    fn take(&mut self, record: &RawRecord) {
        if let Some(settled) = self.table.take(record, self.taken_by.first().copied().unwrap_or_default()) {
            self.count_invalid(outcome(settled));
        }
    }

    /// Shows what was taken, to the batches that begin from now on.
    fn publish(&mut self) -> Result<(), Failure> {
        self.table.publish().map_err(|refused| self.refused(refused))?;
        *self.cell.lock().unwrap_or_else(PoisonError::into_inner) = self.table.version();
        names::table_keys(&self.topic).set(self.table.keys() as f64);
        names::table_bytes(&self.topic).set(self.table.bytes() as f64);
        Ok(())
    }

    /// User code that runs beside what is caught where it is called (S6.1).
    fn panicked(&self, panic: Box<dyn Any + Send>) -> Failure {
        let (_, message) = panicked(panic);
        Failure::new(format!(
            "{self}: a panic while its records were taken: {message}; of user code, the `Eq`, `Hash` and `Drop` of its keys and rows \
             run there: mend them and start again"
        ))
    }

    fn count_invalid(&self, outcome: &str) {
        self.taken_by
            .iter()
            .for_each(|stage| names::invalid_records(stage, &self.topic, outcome).increment(1));
    }

    /// A record that the table can't take stops the process (S9.2).
    fn refused(&self, Refused { at, trouble: (kind, error) }: Refused) -> Failure {
        let place = format!("{}/{} offset {}", self.topic, at.partition, at.offset);
        let error = chain(&*error);
        let what = match kind {
            FailureKind::Decode(part) => {
                self.count_invalid(names::CRASH);
                let part = match part {
                    RecordPart::Key => "key",
                    RecordPart::Value => "value",
                };
                format!(
                    "the {part} of {place} can't be decoded: {error}; write a record of the same key that can be, or a null; give \
                     the topic's type the codec that its records have; or let its `on_invalid` decide"
                )
            }
            FailureKind::Undecided(_) => {
                self.count_invalid(names::CRASH);
                format!("`on_invalid` of the topic's type can't be followed at {place}: {error}")
            }
            FailureKind::Panic => format!("the code of the topic's type panicked at {place}: {error}"),
            _ => format!("the `enrich` function returned an error at {place}: {error}"),
        };
        Failure::new(format!("{self}: {what}"))
    }
}

impl std::fmt::Display for Filling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stages = if self.taken_by.len() == 1 { "stage" } else { "stages" };
        write!(f, "table {} of {stages} {}", self.topic, self.taken_by.join(", "))
    }
}
