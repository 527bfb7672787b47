//! The bytes of a record: version, kind, and the fields one after the other. Numbers are big-endian, strings and lists have their
//! length in front.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::{Entry, GroupRecord, JournalError, MemberRecord, StoredOffset, TransactionRecord};
use crate::coordinator::transaction::TransactionState;
use crate::coordinator::{Producer, TopicPartition};

const VERSION: u8 = 1;

const GROUP: u8 = 1;
const GROUP_DELETED: u8 = 2;
const OFFSET: u8 = 3;
const PENDING_OFFSET: u8 = 4;
const OFFSET_DELETED: u8 = 5;
const PENDING_ENDED: u8 = 6;
const TRANSACTION: u8 = 7;
const TRANSACTION_DELETED: u8 = 8;
const NEXT_PRODUCER_ID: u8 = 9;

pub(super) fn encode(entry: &Entry) -> Bytes {
    let mut to = Writer(BytesMut::new());
    to.u8(VERSION);
    match entry {
        Entry::Group { group, value } => {
            to.u8(GROUP);
            to.string(group);
            to.group(value);
        }
        Entry::GroupDeleted { group } => {
            to.u8(GROUP_DELETED);
            to.string(group);
        }
        Entry::Offset { group, partition, offset } => {
            to.u8(OFFSET);
            to.string(group);
            to.partition(partition);
            to.offset(offset);
        }
        Entry::PendingOffset { group, producer, partition, offset } => {
            to.u8(PENDING_OFFSET);
            to.string(group);
            to.producer(*producer);
            to.partition(partition);
            to.offset(offset);
        }
        Entry::OffsetDeleted { group, partition } => {
            to.u8(OFFSET_DELETED);
            to.string(group);
            to.partition(partition);
        }
        Entry::PendingEnded { group, producer_id, commit } => {
            to.u8(PENDING_ENDED);
            to.string(group);
            to.0.put_i64(*producer_id);
            to.u8(u8::from(*commit));
        }
        Entry::Transaction(transaction) => {
            to.u8(TRANSACTION);
            to.transaction(transaction);
        }
        Entry::TransactionDeleted { transactional_id } => {
            to.u8(TRANSACTION_DELETED);
            to.string(transactional_id);
        }
        Entry::NextProducerId(id) => {
            to.u8(NEXT_PRODUCER_ID);
            to.0.put_i64(*id);
        }
    }
    to.0.freeze()
}

pub(super) fn decode(bytes: Bytes) -> Result<Entry, JournalError> {
    let mut from = Reader(bytes);
    let version = from.u8("version")?;
    if version != VERSION {
        return Err(JournalError::Version { version, known: VERSION });
    }
    let kind = from.u8("kind")?;
    let entry = match kind {
        GROUP => Entry::Group { group: from.string("group")?, value: Arc::new(from.group()?) },
        GROUP_DELETED => Entry::GroupDeleted { group: from.string("group")? },
        OFFSET => Entry::Offset {
            group: from.string("group")?,
            partition: from.partition()?,
            offset: from.offset()?,
        },
        PENDING_OFFSET => Entry::PendingOffset {
            group: from.string("group")?,
            producer: from.producer()?,
            partition: from.partition()?,
            offset: from.offset()?,
        },
        OFFSET_DELETED => Entry::OffsetDeleted { group: from.string("group")?, partition: from.partition()? },
        PENDING_ENDED => Entry::PendingEnded {
            group: from.string("group")?,
            producer_id: from.i64("producer id")?,
            commit: from.bool("result")?,
        },
        TRANSACTION => Entry::Transaction(Arc::new(from.transaction()?)),
        TRANSACTION_DELETED => {
            Entry::TransactionDeleted { transactional_id: from.string("transactional id")? }
        }
        NEXT_PRODUCER_ID => Entry::NextProducerId(from.i64("producer id")?),
        kind => return Err(JournalError::Kind { kind }),
    };
    if from.0.is_empty() { Ok(entry) } else { Err(JournalError::Damaged { place: "end" }) }
}

struct Writer(BytesMut);

impl Writer {
    fn u8(&mut self, value: u8) {
        self.0.put_u8(value);
    }

    /// A length. What is longer than four gigabytes came in by no request; it is cut to a length that the reader refuses.
    fn len(&mut self, len: usize) {
        self.0.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.len(bytes.len());
        self.0.put_slice(bytes);
    }

    fn string(&mut self, string: &str) {
        self.bytes(string.as_bytes());
    }

    fn optional(&mut self, string: Option<&str>) {
        self.u8(u8::from(string.is_some()));
        if let Some(string) = string {
            self.string(string);
        }
    }

    fn partition(&mut self, partition: &TopicPartition) {
        self.string(&partition.topic);
        self.0.put_i32(partition.partition);
    }

    fn producer(&mut self, producer: Producer) {
        self.0.put_i64(producer.id);
        self.0.put_i16(producer.epoch);
    }

    fn offset(&mut self, offset: &StoredOffset) {
        self.0.put_i64(offset.offset);
        self.0.put_i32(offset.leader_epoch);
        self.string(&offset.metadata);
        self.0.put_i64(offset.committed_at);
        self.0.put_u64(offset.position);
    }

    fn group(&mut self, group: &GroupRecord) {
        self.0.put_i32(group.generation);
        self.optional(group.protocol_type.as_deref());
        self.optional(group.protocol.as_deref());
        self.optional(group.leader.as_deref());
        self.0.put_i64(group.since);
        self.len(group.members.len());
        for member in &group.members {
            self.string(&member.member_id);
            self.optional(member.instance_id.as_deref());
            self.string(&member.client_id);
            self.string(&member.client_host);
            self.0.put_u64(member.session_timeout);
            self.0.put_u64(member.rebalance_timeout);
            self.bytes(&member.metadata);
            self.bytes(&member.assignment);
        }
    }

    fn transaction(&mut self, transaction: &TransactionRecord) {
        self.string(&transaction.transactional_id);
        self.producer(transaction.producer);
        self.0.put_i64(transaction.previous_id);
        self.0.put_i16(transaction.last_epoch);
        self.0.put_i32(transaction.timeout_ms);
        self.u8(state_code(transaction.state));
        self.len(transaction.partitions.len());
        for partition in &transaction.partitions {
            self.partition(partition);
        }
        self.len(transaction.groups.len());
        for group in &transaction.groups {
            self.string(group);
        }
        self.0.put_i64(transaction.start);
        self.0.put_i64(transaction.updated);
    }
}

struct Reader(Bytes);

impl Reader {
    fn take(&mut self, len: usize, place: &'static str) -> Result<Bytes, JournalError> {
        if len > self.0.len() {
            return Err(JournalError::Damaged { place });
        }
        Ok(self.0.split_to(len))
    }

    fn array<const N: usize>(&mut self, place: &'static str) -> Result<[u8; N], JournalError> {
        let bytes = self.take(N, place)?;
        <[u8; N]>::try_from(bytes.as_ref()).map_err(|_| JournalError::Damaged { place })
    }

    fn u8(&mut self, place: &'static str) -> Result<u8, JournalError> {
        self.array::<1>(place).map(u8::from_be_bytes)
    }

    fn bool(&mut self, place: &'static str) -> Result<bool, JournalError> {
        match self.u8(place)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(JournalError::Damaged { place }),
        }
    }

    fn i16(&mut self, place: &'static str) -> Result<i16, JournalError> {
        self.array(place).map(i16::from_be_bytes)
    }

    fn i32(&mut self, place: &'static str) -> Result<i32, JournalError> {
        self.array(place).map(i32::from_be_bytes)
    }

    fn i64(&mut self, place: &'static str) -> Result<i64, JournalError> {
        self.array(place).map(i64::from_be_bytes)
    }

    fn u64(&mut self, place: &'static str) -> Result<u64, JournalError> {
        self.array(place).map(u64::from_be_bytes)
    }

    fn len(&mut self, place: &'static str) -> Result<usize, JournalError> {
        let len = self.array(place).map(u32::from_be_bytes)?;
        usize::try_from(len).map_err(|_| JournalError::Damaged { place })
    }

    /// Bytes of their own: a slice would keep all of what was read from disk.
    fn bytes(&mut self, place: &'static str) -> Result<Bytes, JournalError> {
        let len = self.len(place)?;
        self.take(len, place).map(|bytes| Bytes::copy_from_slice(&bytes))
    }

    fn string(&mut self, place: &'static str) -> Result<String, JournalError> {
        let len = self.len(place)?;
        let bytes = self.take(len, place)?;
        std::str::from_utf8(&bytes).map(str::to_owned).map_err(|_| JournalError::Damaged { place })
    }

    fn optional(&mut self, place: &'static str) -> Result<Option<String>, JournalError> {
        if self.bool(place)? { self.string(place).map(Some) } else { Ok(None) }
    }

    fn partition(&mut self) -> Result<TopicPartition, JournalError> {
        Ok(TopicPartition { topic: self.string("topic")?, partition: self.i32("partition")? })
    }

    fn producer(&mut self) -> Result<Producer, JournalError> {
        Ok(Producer { id: self.i64("producer id")?, epoch: self.i16("producer epoch")? })
    }

    fn offset(&mut self) -> Result<StoredOffset, JournalError> {
        Ok(StoredOffset {
            offset: self.i64("offset")?,
            leader_epoch: self.i32("leader epoch")?,
            metadata: self.string("metadata")?,
            committed_at: self.i64("commit time")?,
            position: self.u64("position")?,
        })
    }

    fn group(&mut self) -> Result<GroupRecord, JournalError> {
        let generation = self.i32("generation")?;
        let protocol_type = self.optional("protocol type")?;
        let protocol = self.optional("protocol")?;
        let leader = self.optional("leader")?;
        let since = self.i64("state time")?;
        let mut members = Vec::new();
        for _ in 0..self.len("members")? {
            members.push(MemberRecord {
                member_id: self.string("member id")?,
                instance_id: self.optional("instance id")?,
                client_id: self.string("client id")?,
                client_host: self.string("client host")?,
                session_timeout: self.u64("session time-out")?,
                rebalance_timeout: self.u64("rebalance time-out")?,
                metadata: self.bytes("member metadata")?,
                assignment: self.bytes("assignment")?,
            });
        }
        Ok(GroupRecord { generation, protocol_type, protocol, leader, since, members })
    }

    fn transaction(&mut self) -> Result<TransactionRecord, JournalError> {
        let transactional_id = self.string("transactional id")?;
        let producer = self.producer()?;
        let previous_id = self.i64("previous producer id")?;
        let last_epoch = self.i16("last epoch")?;
        let timeout_ms = self.i32("time-out")?;
        let code = self.u8("state")?;
        let state = TransactionState::ALL
            .into_iter()
            .find(|state| state_code(*state) == code)
            .ok_or(JournalError::Damaged { place: "state" })?;
        let mut partitions = BTreeSet::new();
        for _ in 0..self.len("partitions")? {
            partitions.insert(self.partition()?);
        }
        let mut groups = BTreeSet::new();
        for _ in 0..self.len("groups")? {
            groups.insert(self.string("group")?);
        }
        Ok(TransactionRecord {
            transactional_id,
            producer,
            previous_id,
            last_epoch,
            timeout_ms,
            state,
            partitions,
            groups,
            start: self.i64("start time")?,
            updated: self.i64("state time")?,
        })
    }
}

/// The state's number, which must never change its meaning.
fn state_code(state: TransactionState) -> u8 {
    match state {
        TransactionState::Empty => 0,
        TransactionState::Ongoing => 1,
        TransactionState::PrepareCommit => 2,
        TransactionState::PrepareAbort => 3,
        TransactionState::CompleteCommit => 4,
        TransactionState::CompleteAbort => 5,
        TransactionState::Dead => 6,
    }
}
