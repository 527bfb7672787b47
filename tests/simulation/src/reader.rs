//! Readers of partitions as librdkafka's consumers are: they fetch in the background, one request at a time for each queue,
//! leave out what was aborted, and say where the end of a partition is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use flechtwerk::glue::{Bytes, RawRecord};
use flechtwerk::simulation::{
    BrokerError, ErrorKind, Flaw, Queue as QueuePort, Reader, Taken, TopicPartition, Wake, Watermarks, is_on,
};
use flechtwerk_dev_broker::log::Isolation;

use crate::calls::{call, error};
use crate::plan::{MS, Micros};
use crate::records::{self, Item};
use crate::wire::{Answer, Request, State};
use crate::world::{Event, World, with};

const FETCH_AGAIN: Micros = 30 * MS;

/// A partition that is being read.
pub(crate) struct Queue {
    pub(crate) client: usize,
    log: usize,
    next: i64,
    isolation: Isolation,
    /// Where the end was, when it was told last.
    seen_end: Option<i64>,
    items: VecDeque<Item>,
    end: Option<i64>,
    wake: Wake,
    closed: bool,
    waits: Option<usize>,
}

impl World {
    pub(crate) fn fetch_again(&mut self, queue: usize) {
        let one = &mut self.queues[queue];
        if one.closed || self.is_gone(self.queues[queue].client) {
            return;
        }
        if let Some(slot) = self.queues[queue].waits.take() {
            self.fetch_arrives(slot, queue);
        }
    }

    /// May send its next fetch.
    pub(crate) fn fetch(&mut self, queue: usize) {
        let one = &self.queues[queue];
        if one.closed || self.is_gone(one.client) {
            return;
        }
        let client = one.client;
        self.send(client, Request::Fetch { queue });
    }

    /// A fetch arrives at its node.
    pub(crate) fn fetch_arrives(&mut self, slot: usize, queue: usize) {
        let one = &self.queues[queue];
        // Reading changes nothing: one that was given up is as if it had never come.
        if one.closed || !matches!(self.slots[slot].state, State::Pending) {
            return;
        }
        match self.broker.fetch(one.log, one.next, one.seen_end, one.isolation, self.now) {
            Some(fetched) => self.answer(slot, Answer::Fetched(fetched)),
            None => {
                let log = one.log;
                self.queues[queue].waits = Some(slot);
                self.broker.logs[log].waiting.push(queue);
            }
        }
    }

    /// What a fetch brought is here.
    pub(crate) fn fetched(&mut self, queue: usize, slot: usize) {
        let one = &mut self.queues[queue];
        if one.closed {
            return;
        }
        let State::Answered(Answer::Fetched(fetched)) = &self.slots[slot].state else {
            one.waits = None;
            return self.after(FETCH_AGAIN, Event::Fetch(queue));
        };
        let until = i64::MAX;
        let (items, next) = records::read(&fetched.batches, one.next, until, &fetched.aborted);
        one.items.extend(items);
        one.next = next;
        if let Some(end) = fetched.end {
            one.end = Some(end);
            one.seen_end = Some(end);
        }
        self.wakes.push(queue);
        self.fetch(queue);
    }

    pub(crate) fn waker(&self, queue: usize) -> Option<Wake> {
        let one = &self.queues[queue];
        (!one.closed && !self.is_gone(one.client)).then(|| one.wake.clone())
    }
}

/// The port.
pub(crate) struct SimReader {
    pub(crate) client: usize,
    pub(crate) changelogs: bool,
}

impl Reader for SimReader {
    fn open(
        &self,
        at: &TopicPartition,
        input: u16,
        offset: i64,
        wake: Wake,
    ) -> Result<Box<dyn QueuePort>, BrokerError> {
        let uncommitted = self.changelogs && is_on(Flaw::RestoreUncommitted);
        with(|world| {
            let log = world.broker.log_of(&at.topic, at.partition);
            let log = log.ok_or_else(|| error(ErrorKind::Retriable, "UNKNOWN_TOPIC_OR_PART"))?;
            let queue = world.queues.len();
            world.queues.push(Queue {
                client: self.client,
                log,
                next: offset,
                isolation: if uncommitted { Isolation::ReadUncommitted } else { Isolation::ReadCommitted },
                seen_end: None,
                items: VecDeque::new(),
                end: None,
                wake,
                closed: false,
                waits: None,
            });
            world.fetch(queue);
            Ok(Box::new(SimQueue { queue, input, partition: at.partition }) as Box<dyn QueuePort>)
        })
    }

    fn watermarks(&self, at: &TopicPartition, limit: Duration) -> Result<Watermarks, BrokerError> {
        let log = with(|world| world.broker.log_of(&at.topic, at.partition));
        let log = log.ok_or_else(|| error(ErrorKind::Retriable, "UNKNOWN_TOPIC_OR_PART"))?;
        match call(self.client, Request::ListOffsets { log }, limit)? {
            Answer::Marks((low, stable, high)) => Ok(Watermarks { low, stable, high }),
            _ => Err(error(ErrorKind::Retriable, "NOT_LEADER")),
        }
    }

    fn topic_id(&self, _: &Arc<str>, _: Duration) -> Result<String, BrokerError> {
        Ok(crate::process::CHANGELOG_ID.to_owned())
    }

    fn partitions(&self, _: &Arc<str>, _: Duration) -> Result<i32, BrokerError> {
        Err(error(ErrorKind::Retriable, "NOT_SIMULATED"))
    }

    fn warm_up(&self, _: &[Arc<str>], _: Duration) {}
}

struct SimQueue {
    queue: usize,
    input: u16,
    partition: i32,
}

impl QueuePort for SimQueue {
    fn take(&mut self, max: usize, _: usize, into: &mut Vec<RawRecord>) -> Result<Taken, BrokerError> {
        with(|world| {
            let one = &mut world.queues[self.queue];
            let mut taken = Taken::default();
            while taken.records < max
                && let Some(item) = one.items.pop_front()
            {
                let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
                taken.records += 1;
                taken.bytes += length(&item.key) + length(&item.value);
                into.push(RawRecord {
                    input: self.input,
                    partition: self.partition,
                    offset: item.offset,
                    timestamp: item.timestamp,
                    key: item.key,
                    value: item.value,
                    headers: Default::default(),
                });
            }
            // The event lies behind the records.
            if one.items.is_empty() {
                taken.end = one.end.take();
            }
            Ok(taken)
        })
    }
}

impl Drop for SimQueue {
    fn drop(&mut self) {
        with(|world| {
            let log = world.queues[self.queue].log;
            world.queues[self.queue].closed = true;
            world.broker.logs[log].waiting.retain(|queue| *queue != self.queue);
        });
    }
}
