//! Tables: each read whole before any stage of the process joins its group, once for all stages that take it, and kept up
//! to date from then on (S9.1).
//!
//! A thread for each table takes what its partitions have, and publishes a version of the map after each turn. A version
//! is a persistent map: making one costs what has changed, and whoever holds an older one keeps it.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::context::{Cancel, repeat};
use super::error::{Failure, chain};
use super::messages::outcome;
use super::restore::Parker;
use super::schemas::Asking;
use super::stage::Notice;
use super::supervisor::Plan;
use crate::glue::{
    AnyTable, Env, FailureKind, RawRecord, RecordPart, StageInfo, TableInfo, TopicInfo, Trouble,
};
use crate::observe::{Restores, names};
use crate::port::{Queue, Reader, ReaderKind, Schemas, TopicPartition};

/// Records and bytes taken from a partition at once.
const CHUNK_RECORDS: usize = 10_000;
const CHUNK_BYTES: usize = 4 << 20;
/// How long to wait for more before looking at the cancel flag again.
const WAIT: Duration = Duration::from_millis(100);
/// How long a thread may take to end.
const END_LIMIT: Duration = Duration::from_secs(2);
/// Time limit of one question to the cluster.
const ASK_LIMIT: Duration = Duration::from_secs(5);

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
        let filled = (table.info.make)();
        let cell = Arc::new(Mutex::new(filled.version()));
        self.cells.insert(table.info.topic.name, cell.clone());
        self.unread.fetch_add(1, Ordering::SeqCst);
        let taken_by: Vec<&'static str> = plan
            .stages
            .iter()
            .filter(|stage| stage.names.tables.contains(&table.topic))
            .map(|stage| stage.stage.info().name)
            .collect();
        let filling = Filling {
            topic: table.topic.clone(),
            partitions: table.partitions,
            taken_by,
            inputs: [table.info.topic],
            table: filled,
            cell,
            reader,
            schemas: plan.schemas.clone(),
            broker_timeout: plan.limits.broker_timeout,
            cancel: self.cancel.clone(),
        };
        let (restores, unread, sender) = (plan.restores.clone(), self.unread.clone(), sender.clone());
        let spawned = std::thread::Builder::new().name("table".into()).spawn(move || {
            let read = || unread.fetch_sub(1, Ordering::SeqCst);
            if let Err(failure) = filling.run(&restores, read) {
                // The supervisor outlives its tables.
                let _ = sender.send(Notice::Failed(failure));
            }
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
        Shared { env, tables: cells.collect() }
    }

    /// Ends the reading.
    pub(super) fn stop(self) {
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
    /// The resources.
    env: Env,
    tables: Vec<Cell>,
}

impl Shared {
    /// The resources, and each table as it is now.
    pub(super) fn now(&self) -> Env {
        let mut env = self.env.clone();
        self.tables.iter().for_each(|cell| env.put(last(cell)));
        env
    }
}

/// One table, in its thread.
struct Filling {
    topic: Arc<str>,
    partitions: i32,
    /// The stages that take it, for messages.
    taken_by: Vec<&'static str>,
    /// The topic's type, as the one input that there is.
    inputs: [&'static TopicInfo; 1],
    table: Box<dyn AnyTable>,
    cell: Cell,
    reader: Arc<dyn Reader>,
    schemas: Option<Arc<dyn Schemas>>,
    broker_timeout: Duration,
    cancel: Cancel,
}

/// One partition of a table's topic.
struct Partition {
    at: TopicPartition,
    queue: Box<dyn Queue>,
    position: i64,
    /// Where the first reading ends.
    end: i64,
}

impl Partition {
    fn left(&self) -> u64 {
        u64::try_from(self.end - self.position).unwrap_or(0)
    }
}

impl Filling {
    /// Reads until it is cancelled; `read` is called once, when the table is whole.
    fn run(mut self, restores: &Restores, read: impl FnOnce() -> usize) -> Result<(), Failure> {
        let parker = Parker::new();
        let Some(mut partitions) = self.open(&parker)? else { return Ok(()) };
        let left = |partitions: &[Partition]| partitions.iter().map(Partition::left).sum::<u64>();
        tracing::info!(table = %self.topic, offsets = left(&partitions), "reading");
        let progress = restores.begin_table(&self.topic, left(&partitions));
        let mut records: Vec<RawRecord> = Vec::new();
        // Rows are made of the last record of each key, hence only at the end of the first reading.
        while left(&partitions) > 0 {
            if self.cancel.is_cancelled() {
                return Ok(());
            }
            let (count, bytes) = self.turn(&mut partitions, &mut records)?;
            progress.advance(count as u64, bytes as u64, left(&partitions));
            if count == 0 && left(&partitions) > 0 {
                parker.wait(WAIT);
            }
        }
        self.publish()?;
        drop(progress);
        read();
        while !self.cancel.is_cancelled() {
            match self.turn(&mut partitions, &mut records)? {
                (0, _) => parker.wait(WAIT),
                _ => self.publish()?,
            }
        }
        Ok(())
    }

    /// Starts reading all partitions from their beginnings; `None` if it was cancelled.
    fn open(&self, parker: &Parker) -> Result<Option<Vec<Partition>>, Failure> {
        let who = self.to_string();
        let mut partitions = Vec::new();
        for partition in 0..self.partitions {
            let at = TopicPartition { topic: self.topic.clone(), partition };
            let what = format!("ask for the ends of partition {partition}");
            let marks = repeat(&who, self.broker_timeout, &what, &self.cancel, || {
                self.reader.watermarks(&at, ASK_LIMIT)
            })?;
            let Some(marks) = marks else { return Ok(None) };
            let what = format!("read partition {partition}");
            let queue = repeat(&who, self.broker_timeout, &what, &self.cancel, || {
                self.reader.open(&at, 0, marks.low, parker.wake())
            })?;
            let Some(queue) = queue else { return Ok(None) };
            partitions.push(Partition { at, queue, position: marks.low, end: marks.stable });
        }
        Ok(Some(partitions))
    }

    /// Takes what every partition has: records and bytes.
    fn turn(
        &mut self,
        partitions: &mut [Partition],
        records: &mut Vec<RawRecord>,
    ) -> Result<(usize, usize), Failure> {
        let (mut count, mut bytes) = (0, 0);
        for partition in partitions {
            records.clear();
            let taken = partition.queue.take(CHUNK_RECORDS, CHUNK_BYTES, records).map_err(|error| {
                let what = format!("read partition {}", partition.at.partition);
                Failure::broker_of(&self.to_string(), &what, &error)
            })?;
            if self.schemas.is_some() {
                let who = self.to_string();
                let (schemas, limit) = (self.schemas.as_ref(), self.broker_timeout);
                let asking = Asking { schemas, who: &who, limit, cancel: &self.cancel };
                if !asking.ask(&self.inputs, records.iter())? {
                    return Ok((count, bytes));
                }
            }
            for record in records.iter() {
                partition.position = partition.position.max(record.offset + 1);
                match self.table.take(record, self.taken_by.first().copied().unwrap_or_default()) {
                    Ok(None) => {}
                    Ok(Some(settled)) => self.count_invalid(outcome(settled)),
                    Err(trouble) => return Err(self.refused(record.partition, record.offset, trouble)),
                }
            }
            // It lies behind trailing markers and aborted records.
            partition.position = partition.position.max(taken.end.unwrap_or(0));
            count += taken.records;
            bytes += taken.bytes;
        }
        Ok((count, bytes))
    }

    /// Shows what was taken, to the batches that begin from now on.
    fn publish(&mut self) -> Result<(), Failure> {
        if let Err(refused) = self.table.publish() {
            return Err(self.refused(refused.partition, refused.offset, refused.trouble));
        }
        *self.cell.lock().unwrap_or_else(PoisonError::into_inner) = self.table.version();
        names::table_keys(&self.topic).set(self.table.keys() as f64);
        names::table_bytes(&self.topic).set(self.table.bytes() as f64);
        Ok(())
    }

    fn count_invalid(&self, outcome: &str) {
        self.taken_by
            .iter()
            .for_each(|stage| names::invalid_records(stage, &self.topic, outcome).increment(1));
    }

    /// A record that the table can't take stops the process (S9.2).
    fn refused(&self, partition: i32, offset: i64, (kind, error): Trouble) -> Failure {
        let place = format!("{}/{partition} offset {offset}", self.topic);
        let error = chain(&*error);
        let what = match kind {
            FailureKind::Decode(part) => {
                self.count_invalid(names::CRASH);
                let part = match part {
                    RecordPart::Key => "key",
                    RecordPart::Value => "value",
                };
                format!(
                    "the {part} of {place} can't be decoded: {error}; write a record of the same key that can be, or a null, \
                     and have the topic compacted; give the topic's type the codec that its records have; or let its `on_invalid` decide"
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
