//! The cluster: the development broker's coordinators and logs, which are state machines, and around them what a cluster does
//! with them in time: coordinators that move, markers that take their time, readers that wait.

use std::rc::Rc;

use flechtwerk::simulation::{Flaw, is_on};
use flechtwerk_checkers::tiling::OffsetRecord;
use flechtwerk_checkers::{self as checkers, Partition};
use flechtwerk_dev_broker::coordinator::group::CommitRequest;
use flechtwerk_dev_broker::coordinator::group::{GroupSettings, OffsetCommit, TxnCommitRequest};
use flechtwerk_dev_broker::coordinator::transaction::InitRequest;
use flechtwerk_dev_broker::coordinator::transaction::{ListFilter, TransactionSettings};
use flechtwerk_dev_broker::coordinator::{
    self, Coordinators, Effects, ErrorCode, Millis, Now, Producer, Record, Settings, Ticket, TopicPartition,
    WriteMarkers,
};
use flechtwerk_dev_broker::log::{CompactOptions, Isolation, LogConfig, PartitionLog};

use crate::plan::Micros;
use crate::wire::{Answer, Fetched, Marks, Request};

const NOT_COORDINATOR: i16 = 16;

/// What follows from a request and is to be done in its own time.
pub(crate) enum Todo {
    /// A request that waited is answered.
    Answer(usize, Answer),
    /// A transaction is decided.
    Markers(WriteMarkers),
    /// A log has grown, or more of it is stable.
    Grown(usize),
}

/// A partition.
pub(crate) struct Log {
    pub(crate) topic: Rc<str>,
    pub(crate) partition: i32,
    pub(crate) log: PartitionLog,
    /// Queues that wait for more.
    pub(crate) waiting: Vec<usize>,
    /// Readers see it up to here only, until then.
    pub(crate) lag: Option<(i64, Micros)>,
}

impl Log {
    pub(crate) fn at(&self) -> Partition {
        Partition::new(&*self.topic, self.partition)
    }

    /// Where a reader ends now.
    pub(crate) fn end(&self, isolation: Isolation, now: Micros) -> i64 {
        let end = match isolation {
            Isolation::ReadCommitted => self.log.last_stable_offset(),
            Isolation::ReadUncommitted => self.log.high_watermark(),
        };
        match self.lag {
            Some((seen, until)) if now < until => end.min(seen.max(self.log.log_start_offset())),
            _ => end,
        }
    }
}

struct Pending {
    producer: Producer,
    group: String,
    offsets: Vec<OffsetCommit>,
}

pub(crate) struct Broker {
    coordinators: Coordinators,
    settings: Settings,
    journal: Vec<Record>,
    /// Grows with each move of the coordinators.
    pub(crate) epoch: i32,
    away_until: Micros,
    pub(crate) logs: Vec<Log>,
    waiting: Vec<(Ticket, usize)>,
    last_ticket: u64,
    pending: Vec<Pending>,
    /// All offsets that were ever committed to the group, in order.
    pub(crate) committed: Vec<OffsetRecord>,
}

pub(crate) fn time(now: Micros) -> Now {
    Now { since_start: Millis(now / 1000), wall: 1_700_000_000_000 + (now / 1000) as i64 }
}

impl Broker {
    pub(crate) fn new() -> Broker {
        let settings = Settings {
            groups: GroupSettings {
                min_session_timeout: Millis(1),
                initial_rebalance_delay: Millis(0),
                ..GroupSettings::default()
            },
            transactions: TransactionSettings::default(),
        };
        Broker {
            coordinators: Coordinators::new(settings.clone()),
            settings,
            journal: Vec::new(),
            epoch: 0,
            away_until: 0,
            logs: Vec::new(),
            waiting: Vec::new(),
            last_ticket: 0,
            pending: Vec::new(),
            committed: Vec::new(),
        }
    }

    pub(crate) fn add_log(&mut self, topic: &str, partition: i32, compact: bool) {
        let config = LogConfig { compact, delete: !compact, ..LogConfig::default() };
        let log = PartitionLog::in_memory(config);
        self.logs.push(Log { topic: topic.into(), partition, log, waiting: Vec::new(), lag: None });
    }

    pub(crate) fn log_of(&self, topic: &str, partition: i32) -> Option<usize> {
        self.logs.iter().position(|log| log.partition == partition && &*log.topic == topic)
    }

    /// Carries a request out. `None`: it waits, under its slot.
    pub(crate) fn handle(
        &mut self,
        slot: usize,
        request: &Request,
        now: Micros,
        todo: &mut Vec<Todo>,
    ) -> Option<Answer> {
        let coordinated = !matches!(request, Request::Produce { .. } | Request::ListOffsets { .. });
        if coordinated && now < self.away_until {
            return Some(Answer::Code(NOT_COORDINATOR));
        }
        let mut out = Effects::new();
        let at = time(now);
        let code = |error: ErrorCode| Some(Answer::Code(error.code()));
        let answer = match request {
            Request::Init { id, timeout, current } => {
                let request = InitRequest {
                    transactional_id: Some(id.to_string()),
                    timeout_ms: *timeout,
                    current: *current,
                };
                match self.coordinators.transactions.init_producer_id(at, &request, &mut out) {
                    Ok(producer) => Some(Answer::Init(producer)),
                    Err(error) => code(error),
                }
            }
            Request::AddPartitions { id, producer, partitions } => {
                code(self.coordinators.transactions.add_partitions(at, id, *producer, partitions, &mut out))
            }
            Request::AddOffsets { id, producer, group } => {
                code(self.coordinators.transactions.add_offsets(at, id, *producer, group, &mut out))
            }
            Request::TxnCommit { id, producer, group, member, offsets } => {
                let verified = self.coordinators.transactions.verify_group(id, *producer, group);
                match verified.is_none() {
                    false => code(verified),
                    true => code(self.txn_commit(at, *producer, group, member, offsets, &mut out)),
                }
            }
            Request::Commit { group, offsets } => {
                self.note(None, offsets);
                let request = CommitRequest {
                    group: group.to_string(),
                    generation: -1,
                    member_id: String::new(),
                    instance_id: None,
                    offsets: offsets.clone(),
                };
                let codes = self.coordinators.groups.commit_offsets(at, request, &mut out);
                // The group has members, which is no obstacle for those who break the rules.
                if codes.first().is_some_and(|code| !code.is_none()) {
                    self.force(at, group, offsets, &mut out);
                }
                code(ErrorCode::None)
            }
            Request::Produce { id, producer, log, batch } => {
                Some(Answer::Code(self.produce(id, *producer, *log, batch, at)))
            }
            Request::EndTxn { id, producer, commit } => {
                code(self.coordinators.transactions.end(at, id, *producer, *commit, &mut out))
            }
            Request::Join(request) => {
                let ticket = self.ticket(slot);
                self.coordinators.groups.join(at, ticket, (**request).clone(), &mut out);
                None
            }
            Request::Sync(request) => {
                let ticket = self.ticket(slot);
                self.coordinators.groups.sync(at, ticket, (**request).clone(), &mut out);
                None
            }
            Request::Heartbeat { group, generation, member, fixed } => {
                code(self.coordinators.groups.heartbeat(at, group, member, fixed.as_deref(), *generation))
            }
            Request::Leave { group, member } => {
                let left = self.coordinators.groups.leave(at, group, std::slice::from_ref(member), &mut out);
                code(
                    left.map_or_else(
                        |error| error,
                        |codes| codes.first().copied().unwrap_or(ErrorCode::None),
                    ),
                )
            }
            Request::OffsetFetch { group, partitions, stable } => Some(Answer::Offsets(
                self.coordinators.groups.fetch_offsets(group, Some(partitions), *stable),
            )),
            Request::ListOffsets { log } => Some(Answer::Marks(self.marks(*log))),
            Request::Fetch { .. } => None,
        };
        if let (Request::Produce { log, .. }, Some(Answer::Code(0))) = (request, &answer) {
            todo.push(Todo::Grown(*log));
        }
        self.settle(out, todo);
        answer
    }

    fn txn_commit(
        &mut self,
        at: Now,
        producer: Producer,
        group: &str,
        (generation, member_id, instance_id): &(i32, String, Option<String>),
        offsets: &[OffsetCommit],
        out: &mut Effects,
    ) -> ErrorCode {
        let request = TxnCommitRequest {
            group: group.to_owned(),
            producer,
            generation: *generation,
            member_id: member_id.clone(),
            instance_id: instance_id.clone(),
            offsets: offsets.to_vec(),
        };
        let codes = self.coordinators.groups.txn_commit_offsets(at, request, out);
        let code = codes.into_iter().find(|code| !code.is_none()).unwrap_or(ErrorCode::None);
        if code.is_none() {
            self.pending.retain(|pending| pending.producer.id != producer.id);
            self.pending.push(Pending { producer, group: group.to_owned(), offsets: offsets.to_vec() });
        }
        code
    }

    /// Commits offsets as the transaction of a producer that nobody else has.
    fn force(&mut self, at: Now, group: &str, offsets: &[OffsetCommit], out: &mut Effects) {
        let producer = Producer::new(i64::MAX, 0);
        let request = TxnCommitRequest {
            group: group.to_owned(),
            producer,
            generation: -1,
            member_id: String::new(),
            instance_id: None,
            offsets: offsets.to_vec(),
        };
        self.coordinators.groups.txn_commit_offsets(at, request, out);
        self.coordinators.groups.complete_txn_offsets(at, group, producer, true, out);
    }

    fn produce(&mut self, id: &str, producer: Producer, log: usize, batch: &bytes::Bytes, at: Now) -> i16 {
        let partition = &self.logs[log];
        let open = partition.log.producer(producer.id).is_some_and(|known| {
            known.current_txn_start_offset >= 0 && known.producer_epoch == producer.epoch
        });
        if !open {
            let place = TopicPartition::new(&*partition.topic, partition.partition);
            let verified = self.coordinators.transactions.verify_partition(id, producer, &place);
            if !verified.is_none() {
                return verified.code();
            }
        }
        match self.logs[log].log.append(batch.clone(), at.wall) {
            Ok(_) => 0,
            Err(error) => error.code(),
        }
    }

    pub(crate) fn marks(&self, log: usize) -> Marks {
        let log = &self.logs[log].log;
        (log.log_start_offset(), log.last_stable_offset(), log.high_watermark())
    }

    fn ticket(&mut self, slot: usize) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.waiting.push((ticket, slot));
        ticket
    }

    fn settle(&mut self, mut out: Effects, todo: &mut Vec<Todo>) {
        self.journal.append(&mut out.records);
        for answer in out.answers {
            let Some(index) = self.waiting.iter().position(|(ticket, _)| *ticket == answer.ticket()) else {
                continue;
            };
            let (_, slot) = self.waiting.swap_remove(index);
            todo.push(Todo::Answer(
                slot,
                match answer {
                    coordinator::Answer::Join { response, .. } => Answer::Join(response),
                    coordinator::Answer::Sync { response, .. } => Answer::Sync(response),
                },
            ));
        }
        todo.extend(out.markers.into_iter().map(Todo::Markers));
    }

    /// A marker arrives at a partition.
    pub(crate) fn mark(
        &mut self,
        markers: &WriteMarkers,
        epoch: i32,
        at: &TopicPartition,
        now: Micros,
        todo: &mut Vec<Todo>,
    ) {
        let Some(log) = self.log_of(&at.topic, at.partition) else { return };
        let producer = markers.producer;
        // One of a coordinator that has moved on meanwhile is refused.
        if self.logs[log]
            .log
            .append_marker(producer.id, producer.epoch, markers.commit, epoch, time(now).wall)
            .is_ok()
        {
            todo.push(Todo::Grown(log));
        }
    }

    /// A marker arrives at a group.
    pub(crate) fn mark_group(
        &mut self,
        markers: &WriteMarkers,
        epoch: i32,
        group: &str,
        now: Micros,
        todo: &mut Vec<Todo>,
    ) {
        if epoch < self.epoch {
            return;
        }
        let mut out = Effects::new();
        let producer = markers.producer;
        self.coordinators.groups.complete_txn_offsets(time(now), group, producer, markers.commit, &mut out);
        let mine = |pending: &Pending| {
            pending.producer.id == producer.id
                && pending.producer.epoch <= producer.epoch
                && pending.group == group
        };
        if let Some(index) = self.pending.iter().position(mine) {
            let pending = self.pending.swap_remove(index);
            if markers.commit {
                self.note(Some(pending.producer), &pending.offsets);
            }
        }
        self.settle(out, todo);
    }

    fn note(&mut self, producer: Option<Producer>, offsets: &[OffsetCommit]) {
        let producer = producer.map(|producer| checkers::Producer { id: producer.id, epoch: producer.epoch });
        self.committed.extend(offsets.iter().map(|one| OffsetRecord {
            partition: Partition::new(&one.partition.topic, one.partition.partition),
            offset: one.offset,
            metadata: one.metadata.clone().unwrap_or_default(),
            producer,
        }));
    }

    /// All markers of a transaction have arrived.
    pub(crate) fn marked(&mut self, markers: &WriteMarkers, epoch: i32, now: Micros, todo: &mut Vec<Todo>) {
        if epoch < self.epoch {
            return;
        }
        let mut out = Effects::new();
        self.coordinators.transactions.markers_written(time(now), markers, &mut out);
        self.settle(out, todo);
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Micros, todo: &mut Vec<Todo>) {
        let mut out = Effects::new();
        self.coordinators.groups.tick(time(now), &mut out);
        self.coordinators.transactions.tick(time(now), &mut out);
        self.settle(out, todo);
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        let groups = self.coordinators.groups.next_deadline();
        let transactions = self.coordinators.transactions.next_deadline();
        groups.into_iter().chain(transactions).min().map(|at| at.0 * 1000)
    }

    /// The coordinators move: what waits is sent away, and for a while they are nowhere.
    pub(crate) fn move_away(&mut self, now: Micros, until: Micros, todo: &mut Vec<Todo>) {
        self.epoch += 1;
        self.away_until = until;
        for (_, slot) in self.waiting.drain(..) {
            todo.push(Todo::Answer(slot, Answer::Code(NOT_COORDINATOR)));
        }
        let mut out = Effects::new();
        self.coordinators =
            Coordinators::restore(self.settings.clone(), time(now), self.journal.iter().cloned(), &mut out);
        self.settle(out, todo);
    }

    /// What a fetch brings from here on; `None`: nothing yet.
    pub(crate) fn fetch(
        &self,
        log: usize,
        from: i64,
        seen_end: Option<i64>,
        isolation: Isolation,
        now: Micros,
    ) -> Option<Fetched> {
        let log = &self.logs[log];
        let end = log.end(isolation, now);
        if from < end
            && let Ok(read) = log.log.read(from, 1 << 20, isolation, true)
            && !read.records.is_empty()
        {
            let aborted = if is_on(Flaw::RestoreUncommitted) { Vec::new() } else { read.aborted };
            return Some(Fetched { batches: read.records, aborted, end: None });
        }
        let end = from.max(end);
        (seen_end != Some(end)).then_some(Fetched {
            batches: bytes::Bytes::new(),
            aborted: Vec::new(),
            end: Some(end),
        })
    }

    pub(crate) fn compact(&mut self, now: Micros) {
        for log in self.logs.iter_mut().filter(|log| log.log.config().compact) {
            // A log in memory can always be written.
            let _ = log.log.compact(time(now).wall, CompactOptions::default());
        }
    }

    /// Transactions that are not over.
    pub(crate) fn open_transactions(&self, now: Micros) -> Vec<String> {
        let open = |state: &str| ["Ongoing", "PrepareCommit", "PrepareAbort"].contains(&state);
        let listed = self.coordinators.transactions.list(time(now), &ListFilter::default());
        let transactions = listed.transactions.into_iter().filter(|one| open(one.state.name()));
        transactions.map(|one| one.transactional_id).collect()
    }

    /// The group's offset and metadata of a partition, whatever is pending.
    pub(crate) fn committed_at(&self, group: &str, at: &TopicPartition) -> (i64, String) {
        let found = self.coordinators.groups.fetch_offsets(group, Some(std::slice::from_ref(at)), false);
        found.into_iter().next().map_or((-1, String::new()), |one| (one.offset, one.metadata))
    }
}
