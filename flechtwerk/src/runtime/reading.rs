//! The input queues of one task, and its positions in them.

use std::sync::Arc;

use tokio::sync::Notify;

use super::batch::Held;
use super::context::{Cancel, StageContext};
use super::error::Failure;
use crate::glue::RawRecord;
use crate::port::{Queue, Wake};

/// Reads all inputs of a task.
pub(super) struct Reading {
    queues: Vec<Box<dyn Queue>>,
    /// The next offset to be taken from each queue.
    taken: Vec<i64>,
    /// Offset of the last end-of-partition event of each input.
    ends: Vec<i64>,
    /// Last processed + 1, or the end-of-partition event's offset, whichever is larger (S3.3).
    pub(super) positions: Vec<i64>,
    /// The input that is asked first: they take turns.
    first: usize,
}

impl Reading {
    /// Starts reading at these positions.
    pub(super) fn open(
        context: &StageContext,
        partition: i32,
        positions: Vec<i64>,
        notify: &Arc<Notify>,
    ) -> Result<Reading, Failure> {
        let mut queues = Vec::with_capacity(positions.len());
        for (input, at) in context.input_partitions(partition).iter().enumerate() {
            let notify = notify.clone();
            let wake: Wake = Arc::new(move || notify.notify_one());
            // Repeated only while the queue of an earlier task of this partition is still closing.
            let queue =
                context.retry(&format!("read {}/{}", at.topic, at.partition), &Cancel::default(), || {
                    context.inputs.open(at, input as u16, positions[input], wake.clone())
                })?;
            queues.extend(queue);
        }
        Ok(Reading { queues, taken: positions.clone(), ends: vec![0; positions.len()], positions, first: 0 })
    }

    /// Takes what is there, input by input, with a fair share for each: at most `max` records, and about
    /// `max_bytes`. `records` is empty, and used again for its room.
    pub(super) fn take(
        &mut self,
        context: &StageContext,
        partition: i32,
        max: usize,
        max_bytes: usize,
        mut records: Vec<RawRecord>,
    ) -> Result<Vec<RawRecord>, Failure> {
        let inputs = self.queues.len();
        if inputs == 1 {
            self.take_from(context, partition, 0, max, max_bytes, &mut records)?;
            return Ok(records);
        }
        let mut by_input: Vec<Vec<RawRecord>> = vec![Vec::new(); inputs];
        let (mut room, mut room_bytes) = (max, max_bytes);
        // A second pass gives what some inputs did not use to the others.
        for pass in 0..2 {
            let share = if pass == 0 { (max / inputs).max(1) } else { room };
            let share_bytes = if pass == 0 { (max_bytes / inputs).max(1) } else { room_bytes };
            for turn in 0..inputs {
                let input = (self.first + turn) % inputs;
                let limit = share.min(room);
                if limit == 0 || room_bytes == 0 {
                    break;
                }
                let bytes = self.take_from(
                    context,
                    partition,
                    input,
                    limit,
                    share_bytes.min(room_bytes),
                    &mut by_input[input],
                )?;
                room = max.saturating_sub(by_input.iter().map(Vec::len).sum());
                room_bytes = room_bytes.saturating_sub(bytes);
            }
        }
        self.first = (self.first + 1) % inputs;
        by_input.iter_mut().for_each(|one| records.append(one));
        Ok(records)
    }

    fn take_from(
        &mut self,
        context: &StageContext,
        partition: i32,
        input: usize,
        max: usize,
        max_bytes: usize,
        into: &mut Vec<RawRecord>,
    ) -> Result<usize, Failure> {
        let from = into.len();
        let taken = self.queues[input].take(max, max_bytes, into).map_err(|error| {
            let topic = &context.names.inputs[input];
            if error.code == "OFFSET_OUT_OF_RANGE" {
                return Failure::new(format!(
                    "stage {}: offset {} of input {topic}/{partition} is no longer there: records were deleted \
                     before they were read (retention, or the topic was made anew); decide whether to go on \
                     without them, and use `reset` to set the offsets",
                    context.info.name, self.taken[input]
                ));
            }
            Failure::broker(context.info.name, &format!("read {topic}/{partition}"), &error)
        })?;
        // What lies before the position was asked for by nobody: a left-over of an earlier reading.
        if into.get(from).is_some_and(|record| record.offset < self.taken[input]) {
            let next = self.taken[input];
            let mut index = 0;
            into.retain(|record| {
                index += 1;
                index <= from || record.offset >= next
            });
        }
        if let Some(last) = into.get(from..).and_then(<[RawRecord]>::last) {
            self.taken[input] = last.offset + 1;
        }
        if let Some(end) = taken.end {
            self.ends[input] = self.ends[input].max(end);
            self.taken[input] = self.taken[input].max(end);
        }
        Ok(taken.bytes)
    }

    /// The positions to commit behind a batch.
    pub(super) fn to_commit(&self, empty: bool) -> Vec<i64> {
        let mut positions = self.positions.clone();
        if flawed!(PositionTooFar) {
            positions[0] += 1;
        }
        if flawed!(PositionTooShort) && !empty {
            positions[0] -= 1;
        }
        positions
    }

    /// A round is done: the positions move behind its records.
    pub(super) fn processed(&mut self, records: &[RawRecord]) {
        for record in records {
            let position = &mut self.positions[usize::from(record.input)];
            *position = (*position).max(record.offset + 1);
        }
    }

    /// With nothing taken and unprocessed, the positions move to the ends that were seen: trailing markers and
    /// aborted records count as consumed.
    pub(super) fn reach_ends(&mut self, held: &Held) {
        for (input, position) in self.positions.iter_mut().enumerate() {
            if !held.holds(input) && !flawed!(EndsIgnored) {
                *position = (*position).max(self.ends[input]);
            }
        }
    }
}
