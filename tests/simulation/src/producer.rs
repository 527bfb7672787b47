//! A transactional producer as librdkafka is one: which requests a call sends, which of them it repeats by itself, what it counts
//! as unanswered, and which errors it calls fatal, abortable or retriable. A model, written from the rules that the adapter's
//! tests pin down; what is decided on top of it is the runtime's own code.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flechtwerk::glue::Outputs;
use flechtwerk::simulation::{
    BrokerError, ChangelogRecord, ErrorKind, Flaw, Group, OffsetCommit, Producer, ProducerFactory,
    Unanswered, is_on,
};
use flechtwerk_dev_broker::coordinator::group::OffsetCommit as WireOffset;
use flechtwerk_dev_broker::coordinator::{self, TopicPartition};
use flechtwerk_dev_broker::log::write_batch;

use crate::calls::{error, outcome};
use crate::member::SimGroup;
use crate::plan::{MS, Micros};
use crate::process::wait;
use crate::times;
use crate::wire::{Answer, Request, State};
use crate::world::with;

const NOBODY: coordinator::Producer = coordinator::Producer { id: -1, epoch: -1 };
/// Before the same request again.
const BACK_OFF: Micros = MS;
/// Before the first request on a new connection.
const RECONNECT: Micros = 5 * MS;

type Records = Vec<(Option<Bytes>, Option<Bytes>)>;

/// Makes producers.
pub(crate) struct SimProducers;

impl ProducerFactory for SimProducers {
    fn create(&self, transactional_id: &str, _: &str) -> Result<Box<dyn Producer>, BrokerError> {
        let client = with(|world| world.client());
        Ok(Box::new(SimProducer {
            client,
            id: Arc::from(transactional_id),
            me: NOBODY,
            sequences: BTreeMap::new(),
            fatal: None,
            failed: None,
            bump: false,
            open: None,
            transaction: Transaction::default(),
            metadata: None,
        }))
    }
}

#[derive(Default)]
struct Transaction {
    begun: bool,
    /// The coordinator may know of it.
    known: bool,
    group_added: bool,
    offsets_sent: bool,
    added: Vec<usize>,
    batches: Vec<Batch>,
    since: Micros,
    ending: bool,
}

struct Batch {
    log: usize,
    records: Records,
    sequence: i32,
    slot: Option<usize>,
    done: bool,
}

struct SimProducer {
    client: usize,
    id: Arc<str>,
    me: coordinator::Producer,
    sequences: BTreeMap<usize, i32>,
    fatal: Option<BrokerError>,
    failed: Option<BrokerError>,
    /// The epoch must be bumped after the abort.
    bump: bool,
    /// The request of a call that ran out of time.
    open: Option<usize>,
    transaction: Transaction,
    metadata: Option<(i32, String, Option<String>)>,
}

fn now() -> Micros {
    with(|world| world.now)
}

fn after(limit: Duration) -> Micros {
    now() + limit.as_micros() as Micros
}

fn timed_out() -> BrokerError {
    error(ErrorKind::TimedOut, "_TIMED_OUT")
}

/// What a code means to a producer.
fn meaning(code: i16) -> BrokerError {
    match code {
        22 => error(ErrorKind::Generation, "ILLEGAL_GENERATION"),
        25 => error(ErrorKind::Generation, "UNKNOWN_MEMBER_ID"),
        27 => error(ErrorKind::Generation, "REBALANCE_IN_PROGRESS"),
        82 => error(ErrorKind::FencedInstance, "FENCED_INSTANCE_ID"),
        47 => error(ErrorKind::Fenced, "INVALID_PRODUCER_EPOCH"),
        90 => error(ErrorKind::Fenced, "PRODUCER_FENCED"),
        45 => error(ErrorKind::Abortable, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        other => error(ErrorKind::Fatal, &format!("CODE_{other}")),
    }
}

/// Codes after which the client repeats the request by itself.
fn repeats(code: i16) -> bool {
    [6, 7, 14, 15, 16, 51].contains(&code)
}

impl SimProducer {
    /// The transactional id on the wire. One that nobody shares is never fenced.
    fn rc(&self) -> Rc<str> {
        match is_on(Flaw::NoFence) {
            true => Rc::from(format!("{}~{}", self.id, self.client)),
            false => Rc::from(&*self.id),
        }
    }

    fn usable(&self) -> Result<(), BrokerError> {
        self.fatal.clone().map_or(Ok(()), Err)
    }

    /// Remembers what makes the client unusable.
    fn note(&mut self, error: BrokerError) -> BrokerError {
        if matches!(error.kind, ErrorKind::Fatal | ErrorKind::Fenced) {
            self.fatal.get_or_insert_with(|| error.clone());
        }
        error
    }

    /// A request that the client repeats by itself, up to the time limit. Where an earlier call ran out of time, its request is
    /// awaited first.
    fn request(&mut self, request: &Request, until: Micros) -> Result<Answer, BrokerError> {
        loop {
            let slot = match self.open.take() {
                Some(slot) => slot,
                None => with(|world| world.send(self.client, request.clone())),
            };
            let pause = match outcome(slot, until) {
                None | Some(State::Pending) => {
                    self.open = Some(slot);
                    return Err(timed_out());
                }
                Some(State::Lost) => RECONNECT,
                Some(State::Answered(answer)) if repeats(answer.code()) => BACK_OFF,
                Some(State::Answered(answer)) => return Ok(answer),
            };
            let again = now() + pause;
            if again >= until {
                wait(until, &mut || false);
                return Err(timed_out());
            }
            wait(again, &mut || false);
        }
    }

    fn asked(&mut self, request: &Request, until: Micros) -> Result<(), BrokerError> {
        match self.request(request, until)?.code() {
            0 => Ok(()),
            code => Err(self.note(meaning(code))),
        }
    }

    fn queue(&mut self, log: usize, records: Records) {
        if !records.is_empty() {
            self.transaction.batches.push(Batch { log, records, sequence: -1, slot: None, done: false });
        }
    }

    /// Tells the coordinator of the partitions, and sends the batches, until all are answered.
    fn flush(&mut self, until: Micros) -> Result<(), BrokerError> {
        let new: Vec<usize> = self.transaction.batches.iter().map(|batch| batch.log).collect();
        let new: Vec<usize> = new.into_iter().filter(|log| !self.transaction.added.contains(log)).collect();
        if !new.is_empty() {
            let partitions = with(|world| {
                let place = |log: &usize| {
                    let log = &world.broker.logs[*log];
                    TopicPartition::new(&*log.topic, log.partition)
                };
                new.iter().map(place).collect()
            });
            self.transaction.known = true;
            self.asked(&Request::AddPartitions { id: self.rc(), producer: self.me, partitions }, until)?;
            self.transaction.added.extend(new);
        }
        loop {
            let mut waiting = false;
            for index in 0..self.transaction.batches.len() {
                self.push(index)?;
                waiting |= !self.transaction.batches[index].done;
            }
            if !waiting {
                return Ok(());
            }
            if now() - self.transaction.since > times::TRANSACTION {
                let late = error(ErrorKind::Abortable, "_MSG_TIMED_OUT");
                self.failed.get_or_insert_with(|| late.clone());
                return Err(late);
            }
            if now() >= until {
                return Err(timed_out());
            }
            let slots: Vec<usize> = self.transaction.batches.iter().filter_map(|batch| batch.slot).collect();
            let pause = if slots.is_empty() { (now() + RECONNECT).min(until) } else { until };
            wait(pause, &mut || {
                with(|world| slots.iter().any(|slot| !matches!(world.slots[*slot].state, State::Pending)))
            });
        }
    }

    /// Sends a batch, or looks what became of it.
    fn push(&mut self, index: usize) -> Result<(), BrokerError> {
        let batch = &mut self.transaction.batches[index];
        if batch.done {
            return Ok(());
        }
        if let Some(slot) = batch.slot {
            match with(|world| world.slots[slot].state.clone()) {
                State::Pending => return Ok(()),
                State::Lost => {
                    batch.slot = None;
                    return Ok(());
                }
                State::Answered(answer) => match answer.code() {
                    0 => {
                        batch.done = true;
                        batch.slot = None;
                        return Ok(());
                    }
                    code if repeats(code) => {
                        batch.slot = None;
                        return Ok(());
                    }
                    code => {
                        let mut why = meaning(code);
                        if why.kind == ErrorKind::Fatal {
                            why.kind = ErrorKind::Abortable;
                        }
                        self.bump |= code == 45;
                        let why = self.note(why);
                        self.failed.get_or_insert_with(|| why.clone());
                        return Err(why);
                    }
                },
            }
        }
        // Batches of a partition are sent in order, one at a time.
        let log = batch.log;
        if self.transaction.batches[..index].iter().any(|before| before.log == log && !before.done) {
            return Ok(());
        }
        let id = self.rc();
        let batch = &mut self.transaction.batches[index];
        if batch.sequence < 0 {
            let next = self.sequences.entry(log).or_default();
            batch.sequence = *next;
            *next += batch.records.len() as i32;
        }
        let records: Vec<_> =
            batch.records.iter().map(|(key, value)| (key.as_deref(), value.as_deref())).collect();
        let bytes = write_batch(Some((self.me, batch.sequence)), 0, &records);
        let request = Request::Produce { id, producer: self.me, log, batch: bytes };
        batch.slot = Some(with(|world| world.send(self.client, request)));
        Ok(())
    }
}

impl Producer for SimProducer {
    fn fence(&mut self, limit: Duration) -> Result<(), BrokerError> {
        let request =
            Request::Init { id: self.rc(), timeout: (times::TRANSACTION / MS) as i32, current: NOBODY };
        match self.request(&request, after(limit))? {
            Answer::Init(producer) => {
                self.me = producer;
                Ok(())
            }
            answer => Err(self.note(meaning(answer.code()))),
        }
    }

    fn begin(&mut self) -> Result<(), BrokerError> {
        self.usable()?;
        if self.transaction.begun {
            return Err(error(ErrorKind::Fatal, "_STATE"));
        }
        self.failed = None;
        self.open = None;
        self.transaction = Transaction { begun: true, since: now(), ..Transaction::default() };
        Ok(())
    }

    fn produce(&mut self, outputs: &Outputs, topics: &[Arc<str>]) -> Result<(), BrokerError> {
        self.usable()?;
        let mut by_log: BTreeMap<usize, Records> = BTreeMap::new();
        for record in &outputs.records {
            let part = |range: &Option<std::ops::Range<usize>>| {
                range.as_ref().map(|range| Bytes::copy_from_slice(outputs.slice(range)))
            };
            let (key, value) = (part(&record.key), part(&record.value));
            let log = with(|world| {
                // A simple hash stands for the partitioner: the same key, the same partition.
                let sum: u32 = key.iter().flatten().map(|byte| u32::from(*byte)).sum();
                let partition = record.partition.unwrap_or((sum % world.plan.partitions as u32) as i32);
                world.broker.log_of(&topics[usize::from(record.topic)], partition)
            });
            let log = log.ok_or_else(|| error(ErrorKind::Hopeless, "UNKNOWN_TOPIC_OR_PART"))?;
            by_log.entry(log).or_default().push((key, value));
        }
        by_log.into_iter().for_each(|(log, records)| self.queue(log, records));
        Ok(())
    }

    fn produce_changelog(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        changes: &[ChangelogRecord],
    ) -> Result<(), BrokerError> {
        self.usable()?;
        let log = with(|world| world.broker.log_of(topic, partition));
        let log = log.ok_or_else(|| error(ErrorKind::Hopeless, "UNKNOWN_TOPIC_OR_PART"))?;
        let records = changes
            .iter()
            .map(|change| (Some(change.key.clone().into()), change.value.clone().map(Into::into)));
        self.queue(log, records.collect());
        Ok(())
    }

    fn send_offsets(
        &mut self,
        offsets: &[OffsetCommit],
        group: &dyn Group,
        limit: Duration,
    ) -> Result<(), BrokerError> {
        self.usable()?;
        let until = after(limit);
        let Some(group) = group.as_any().downcast_ref::<SimGroup>() else {
            return Err(error(ErrorKind::Hopeless, "_INVALID_ARG"));
        };
        let (name, fresh) = with(|world| {
            let member = &world.members[group.0];
            (member.group.clone(), (member.generation, member.id.clone(), member.fixed.clone()))
        });
        let member = match () {
            () if is_on(Flaw::NoGeneration) => (-1, String::new(), None),
            () if is_on(Flaw::StaleMetadata) => self.metadata.get_or_insert(fresh).clone(),
            () => fresh,
        };
        let offsets = offsets
            .iter()
            .map(|one| WireOffset {
                partition: TopicPartition::new(&*one.at.topic, one.at.partition),
                offset: one.offset,
                leader_epoch: -1,
                metadata: Some(one.metadata.clone()),
            })
            .collect();
        if is_on(Flaw::OffsetsOutside) {
            return self.asked(&Request::Commit { group: name, offsets }, until);
        }
        if !self.transaction.group_added {
            self.transaction.known = true;
            self.asked(
                &Request::AddOffsets { id: self.rc(), producer: self.me, group: name.clone() },
                until,
            )?;
            self.transaction.group_added = true;
        }
        self.asked(
            &Request::TxnCommit { id: self.rc(), producer: self.me, group: name, member, offsets },
            until,
        )?;
        self.transaction.offsets_sent = true;
        Ok(())
    }

    fn commit(&mut self, slice: Duration) -> Result<(), BrokerError> {
        self.usable()?;
        let until = after(slice);
        if !self.transaction.ending {
            self.flush(until)?;
            self.transaction.ending = true;
        }
        if self.transaction.known {
            self.asked(&Request::EndTxn { id: self.rc(), producer: self.me, commit: true }, until)?;
        }
        self.transaction = Transaction::default();
        Ok(())
    }

    fn abort(&mut self, limit: Duration) -> Result<(), BrokerError> {
        self.usable()?;
        if self.transaction.ending {
            return Err(error(ErrorKind::Fatal, "_CONFLICT"));
        }
        // What is on its way is forgotten, and stays on its way.
        self.open = None;
        self.transaction.batches.clear();
        let until = after(limit);
        if std::mem::take(&mut self.transaction.known) {
            self.asked(&Request::EndTxn { id: self.rc(), producer: self.me, commit: false }, until)?;
        }
        if std::mem::take(&mut self.bump) {
            let request =
                Request::Init { id: self.rc(), timeout: (times::TRANSACTION / MS) as i32, current: self.me };
            match self.request(&request, until)? {
                Answer::Init(producer) => {
                    self.me = producer;
                    self.sequences.clear();
                }
                answer => return Err(self.note(meaning(answer.code()))),
            }
        }
        self.transaction = Transaction::default();
        Ok(())
    }

    fn delivery_error(&mut self) -> Option<BrokerError> {
        self.failed.clone()
    }

    fn unanswered(&self) -> Unanswered {
        with(|world| world.clients[self.client].unanswered)
    }

    fn serve(&mut self) {}
}
