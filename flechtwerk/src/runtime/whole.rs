//! Reads topics whole, from their oldest records to the end that they had at the start, and then whatever comes (S9.1).
//! What the records mean is the caller's: here they are bytes.

use std::sync::Arc;
use std::time::Duration;

use super::context::{Cancel, repeat};
use super::error::Failure;
use super::restore::Parker;
use crate::glue::RawRecord;
use crate::port::{Queue, Reader, TopicPartition};

/// Records taken from a queue at once.
const CHUNK_RECORDS: usize = 10_000;
/// Bytes taken from a queue at once.
const CHUNK_BYTES: usize = 4 << 20;
/// Time limit of one question to the cluster.
const ASK_LIMIT: Duration = Duration::from_secs(5);

struct Partition {
    at: TopicPartition,
    queue: Box<dyn Queue>,
    /// The next offset to read.
    position: i64,
    /// Where the partition ended at the start.
    end: i64,
}

/// See the module.
pub(super) struct Whole {
    stage: &'static str,
    partitions: Vec<Partition>,
    parker: Parker,
}

impl Whole {
    /// Starts reading the first `count` partitions of these topics; a record's `input` is its topic's place in the list.
    /// `None`: cancelled.
    pub(super) fn open(
        stage: &'static str,
        reader: &dyn Reader,
        topics: &[Arc<str>],
        count: i32,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<Option<Whole>, Failure> {
        let who = format!("stage {stage}");
        let parker = Parker::new();
        let mut partitions = Vec::new();
        for (input, topic) in (0..).zip(topics) {
            for partition in 0..count {
                let at = TopicPartition { topic: topic.clone(), partition };
                let what = format!("read {topic}/{partition}");
                let marks = repeat(&who, limit, &what, cancel, || reader.watermarks(&at, ASK_LIMIT))?;
                let Some(marks) = marks else { return Ok(None) };
                let queue =
                    repeat(&who, limit, &what, cancel, || reader.open(&at, input, marks.low, parker.wake()))?;
                let Some(queue) = queue else { return Ok(None) };
                partitions.push(Partition { at, queue, position: marks.low, end: marks.stable });
            }
        }
        Ok(Some(Whole { stage, partitions, parker }))
    }

    /// Takes what is there.
    pub(super) fn take(&mut self) -> Result<Vec<RawRecord>, Failure> {
        let mut records = Vec::new();
        for partition in &mut self.partitions {
            let Partition { at, queue, position, .. } = partition;
            let taken = queue.take(CHUNK_RECORDS, CHUNK_BYTES, &mut records).map_err(|error| {
                Failure::broker(self.stage, &format!("read {}/{}", at.topic, at.partition), &error)
            })?;
            if taken.records > 0
                && let Some(last) = records.last()
            {
                *position = last.offset + 1;
            }
            // The end-of-partition event covers trailing markers and aborted records.
            *position = (*position).max(taken.end.unwrap_or(0));
        }
        Ok(records)
    }

    /// Everything that was there at the start has been taken.
    pub(super) fn is_whole(&self) -> bool {
        self.partitions.iter().all(|partition| partition.position >= partition.end)
    }

    /// Where it is, for whoever waits: the first partition that is not read to its end.
    pub(super) fn behind(&self) -> String {
        let behind = self.partitions.iter().find(|partition| partition.position < partition.end);
        behind.map_or(String::new(), |one| {
            format!("{}/{} at offset {} of {}", one.at.topic, one.at.partition, one.position, one.end)
        })
    }

    /// Waits until there may be more.
    pub(super) fn wait(&self, limit: Duration) {
        self.parker.wait(limit);
    }
}
