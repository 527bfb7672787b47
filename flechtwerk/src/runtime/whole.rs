//! Reads topics whole, tables and configs: from their oldest records to the end that they had at the start, and then whatever comes
//! (S9.1, S10.5). What the records mean is the caller's: here they are bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::context::{Cancel, repeat};
use super::error::Failure;
use super::restore::Parker;
use super::schemas::Asking;
use super::topic_watch::{Count, TopicWatch};
use crate::glue::{RawRecord, TopicInfo};
use crate::port::{BrokerError, Queue, Reader, Schemas, TopicPartition};

/// Records taken from a partition at once.
const CHUNK_RECORDS: usize = 10_000;
/// Bytes taken from a partition at once.
const CHUNK_BYTES: usize = 4 << 20;
/// How long to wait for more before looking at the cancel flag again.
const WAIT: Duration = Duration::from_millis(100);
/// Time limit of one question to the cluster.
const ASK_LIMIT: Duration = Duration::from_secs(5);
/// A first reading that takes longer says so, each time this has passed.
const STILL_INTERVAL: Duration = Duration::from_secs(10);

/// Topics to read.
pub(super) struct Open<'a> {
    pub(super) reader: &'a Arc<dyn Reader>,
    pub(super) topics: &'a [Arc<str>],
    /// Their types.
    pub(super) types: &'a [&'static TopicInfo],
    /// Partitions of each of them.
    pub(super) count: Count,
}

struct Partition {
    at: TopicPartition,
    queue: Box<dyn Queue>,
    /// The next offset to read.
    position: i64,
    /// Where the partition ended at the start.
    end: i64,
}

impl Partition {
    fn left(&self) -> u64 {
        u64::try_from(self.end - self.position).unwrap_or(0)
    }
}

/// See the module.
pub(super) struct Whole {
    who: String,
    schemas: Option<Arc<dyn Schemas>>,
    types: Vec<&'static TopicInfo>,
    /// How long a question is repeated.
    limit: Duration,
    cancel: Cancel,
    partitions: Vec<Partition>,
    parker: Parker,
    records: Vec<RawRecord>,
    watch: TopicWatch,
}

/// What one turn through all partitions took.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) records: usize,
    pub(super) bytes: usize,
    /// Offsets up to the ends that there were at the start.
    pub(super) left: u64,
}

impl Whole {
    /// Starts reading; a record's `input` is its topic's place in the list. `None`: cancelled.
    pub(super) fn open(open: Open<'_>, asking: &Asking<'_>) -> Result<Option<Whole>, Failure> {
        let Open { reader, topics, types, count } = open;
        let numbers = 0..count.partitions;
        let &Asking { schemas, who, limit, cancel } = asking;
        // Before anything of them is read.
        let Some(watch) = TopicWatch::begin(reader, topics, Some(count), who, limit, cancel)? else {
            return Ok(None);
        };
        let parker = Parker::new();
        let mut partitions = Vec::new();
        for (input, topic) in (0..).zip(topics) {
            for partition in numbers.clone() {
                let at = TopicPartition { topic: topic.clone(), partition };
                let what = format!("ask for the ends of {at}");
                let marks = repeat(who, limit, &what, cancel, || reader.watermarks(&at, ASK_LIMIT))?;
                let Some(marks) = marks else { return Ok(None) };
                let queue = repeat(who, limit, &format!("read {at}"), cancel, || {
                    reader.open(&at, input, marks.low, parker.wake())
                })?;
                let Some(queue) = queue else { return Ok(None) };
                partitions.push(Partition { at, queue, position: marks.low, end: marks.stable });
            }
        }
        Ok(Some(Whole {
            who: who.to_owned(),
            schemas: schemas.cloned(),
            types: types.to_vec(),
            limit,
            cancel: cancel.clone(),
            partitions,
            parker,
            records: Vec::new(),
            watch,
        }))
    }

    /// Reads what was there at the start, at the least; `turned` hears of each turn. False: cancelled.
    pub(super) fn read(
        &mut self,
        mut take: impl FnMut(&RawRecord),
        mut turned: impl FnMut(Turn),
    ) -> Result<bool, Failure> {
        let began = Instant::now();
        let mut said = began;
        while self.left() > 0 {
            if self.cancel.is_cancelled() {
                return Ok(false);
            }
            let turn = self.turn(&mut take)?;
            turned(turn);
            if turn.left > 0 && said.elapsed() >= STILL_INTERVAL {
                said = Instant::now();
                tracing::warn!(
                    "{}: not read to its end after {} s: {}",
                    self.who,
                    began.elapsed().as_secs(),
                    self.behind()
                );
            }
            if turn.records == 0 && turn.left > 0 {
                self.parker.wait(WAIT);
            }
        }
        Ok(true)
    }

    /// Waits for more, and takes it; how many records it was.
    pub(super) fn follow(&mut self, mut take: impl FnMut(&RawRecord)) -> Result<usize, Failure> {
        let turn = self.turn(&mut take)?;
        if turn.records == 0 {
            self.parker.wait(WAIT);
        }
        Ok(turn.records)
    }

    /// Nobody wants to know any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Offsets up to the ends that there were at the start.
    pub(super) fn left(&self) -> u64 {
        self.partitions.iter().map(Partition::left).sum()
    }

    /// Takes what every partition has, or less if it is cancelled.
    fn turn(&mut self, take: &mut impl FnMut(&RawRecord)) -> Result<Turn, Failure> {
        self.watch.look(&self.who)?;
        let (mut records, mut bytes) = (0, 0);
        let (schemas, who) = (self.schemas.as_ref(), &*self.who);
        let asking = Asking { schemas, who, limit: self.limit, cancel: &self.cancel };
        for partition in &mut self.partitions {
            self.records.clear();
            let taken = partition
                .queue
                .take(CHUNK_RECORDS, CHUNK_BYTES, &mut self.records)
                .map_err(|error| not_read(&self.who, &partition.at, partition.position, &error))?;
            // Nothing of it counts, so that nobody takes the reading for whole.
            if !asking.ask(&self.types, &self.records)? {
                break;
            }
            for record in &self.records {
                partition.position = partition.position.max(record.offset + 1);
                take(record);
            }
            // The end-of-partition event covers trailing markers and aborted records.
            partition.position = partition.position.max(taken.end.unwrap_or(0));
            records += taken.records;
            bytes += taken.bytes;
        }
        // What was taken keeps the client's buffers alive.
        self.records.clear();
        Ok(Turn { records, bytes, left: self.left() })
    }

    /// Where it is, for whoever waits: the first partition that is not read to its end.
    fn behind(&self) -> String {
        let behind = self.partitions.iter().find(|partition| partition.left() > 0);
        behind.map_or(String::new(), |one| format!("{} at offset {} of {}", one.at, one.position, one.end))
    }
}

fn not_read(who: &str, at: &TopicPartition, position: i64, error: &BrokerError) -> Failure {
    if error.code == "OFFSET_OUT_OF_RANGE" {
        return Failure::new(format!(
            "{who}: offset {position} of {at} is no longer there: records were deleted before they were read, or the topic was \
             made anew, and what is held of it may be wrong; start again: it is read from its beginning then"
        ));
    }
    Failure::broker_of(who, &format!("read {at}"), error)
}
