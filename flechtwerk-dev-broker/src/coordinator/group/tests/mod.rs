//! The rules of groups by name, and histories of random calls.

mod admin;
mod durability;
mod fixed;
mod histories;
mod membership;
mod offsets;
mod rebalance;
mod transactional;

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};

use super::*;
use crate::coordinator::{Coordinators, Producer, Settings, TopicPartition};

const SESSION: i32 = 10_000;
const REBALANCE: i32 = 60_000;

/// A group coordinator with a clock, that keeps all answers and the journal.
struct Fixture {
    groups: Groups,
    settings: GroupSettings,
    now: Now,
    tickets: u64,
    answers: BTreeMap<Ticket, Answer>,
    journal: Vec<Record>,
}

use crate::coordinator::Record;

impl Fixture {
    fn new() -> Self {
        Self::with(GroupSettings::default())
    }

    fn with(settings: GroupSettings) -> Self {
        Self {
            groups: Groups::new(settings.clone()),
            settings,
            now: Now { since_start: Millis(1_000), wall: 1_700_000_000_000 },
            tickets: 0,
            answers: BTreeMap::new(),
            journal: Vec::new(),
        }
    }

    fn take(&mut self, out: Effects) {
        assert!(out.markers.is_empty());
        for answer in out.answers {
            let before = self.answers.insert(answer.ticket(), answer);
            assert!(before.is_none(), "a ticket was answered twice");
        }
        self.journal.extend(out.records);
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// Lets time pass in one step, and does what is due then.
    fn pass(&mut self, millis: u64) {
        self.now.since_start = self.now.since_start.after(Millis(millis));
        self.now.wall += i64::try_from(millis).unwrap();
        let mut out = Effects::new();
        self.groups.tick(self.now, &mut out);
        self.take(out);
    }

    fn join(&mut self, request: JoinRequest) -> Ticket {
        let ticket = self.ticket();
        let mut out = Effects::new();
        self.groups.join(self.now, ticket, request, &mut out);
        self.take(out);
        ticket
    }

    fn joined(&self, ticket: Ticket) -> Option<JoinResponse> {
        match self.answers.get(&ticket)? {
            Answer::Join { response, .. } => Some(response.clone()),
            Answer::Sync { .. } => panic!("a join was answered as a sync"),
        }
    }

    /// Joins, and the answer is there at once.
    fn join_now(&mut self, request: JoinRequest) -> JoinResponse {
        let ticket = self.join(request);
        self.joined(ticket).expect("the join waits")
    }

    fn sync(&mut self, request: SyncRequest) -> Ticket {
        let ticket = self.ticket();
        let mut out = Effects::new();
        self.groups.sync(self.now, ticket, request, &mut out);
        self.take(out);
        ticket
    }

    fn synced(&self, ticket: Ticket) -> Option<SyncResponse> {
        match self.answers.get(&ticket)? {
            Answer::Sync { response, .. } => Some(response.clone()),
            Answer::Join { .. } => panic!("a sync was answered as a join"),
        }
    }

    fn sync_now(&mut self, request: SyncRequest) -> SyncResponse {
        let ticket = self.sync(request);
        self.synced(ticket).expect("the sync waits")
    }

    fn heartbeat(&mut self, member_id: &str, generation: i32) -> ErrorCode {
        self.groups.heartbeat(self.now, "g", member_id, None, generation)
    }

    fn leave(&mut self, member_id: &str, instance_id: Option<&str>) -> ErrorCode {
        let leaving =
            LeavingMember { member_id: member_id.to_owned(), instance_id: instance_id.map(str::to_owned) };
        let mut out = Effects::new();
        let codes = self.groups.leave(self.now, "g", &[leaving], &mut out).unwrap();
        self.take(out);
        codes[0]
    }

    fn commit(&mut self, member_id: &str, generation: i32, offset: i64) -> ErrorCode {
        self.commit_as(member_id, None, generation, commit(0, offset))
    }

    fn commit_as(
        &mut self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
        offset: OffsetCommit,
    ) -> ErrorCode {
        let request = CommitRequest {
            group: "g".to_owned(),
            generation,
            member_id: member_id.to_owned(),
            instance_id: instance_id.map(str::to_owned),
            offsets: vec![offset],
        };
        let mut out = Effects::new();
        let codes = self.groups.commit_offsets(self.now, request, &mut out);
        self.take(out);
        codes[0]
    }

    fn txn_commit(&mut self, producer: Producer, offset: OffsetCommit) -> ErrorCode {
        self.txn_commit_as(producer, "", None, -1, offset)
    }

    fn txn_commit_as(
        &mut self,
        producer: Producer,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
        offset: OffsetCommit,
    ) -> ErrorCode {
        let request = TxnCommitRequest {
            group: "g".to_owned(),
            producer,
            generation,
            member_id: member_id.to_owned(),
            instance_id: instance_id.map(str::to_owned),
            offsets: vec![offset],
        };
        let mut out = Effects::new();
        let codes = self.groups.txn_commit_offsets(self.now, request, &mut out);
        self.take(out);
        codes[0]
    }

    fn complete(&mut self, producer: Producer, commit: bool) {
        let mut out = Effects::new();
        self.groups.complete_txn_offsets(self.now, "g", producer, commit, &mut out);
        self.take(out);
    }

    /// A partition's committed offset, and why there is none.
    fn offset(&self, partition: i32, require_stable: bool) -> (i64, ErrorCode) {
        let partitions = [TopicPartition::new("t", partition)];
        let fetched = self.groups.fetch_offsets("g", Some(&partitions), require_stable);
        (fetched[0].offset, fetched[0].error)
    }

    fn describe(&self) -> DescribedGroup {
        self.groups.describe("g").unwrap()
    }

    fn state(&self) -> GroupState {
        self.describe().state
    }

    /// Two members in a stable group: the leader, a follower and the generation.
    fn pair(&mut self) -> (String, String, i32) {
        let first = self.join_now(dynamic(""));
        let ticket = self.join(dynamic(""));
        let again = self.join(dynamic(&first.member_id));
        let (leader, follower) = (self.joined(again).unwrap(), self.joined(ticket).unwrap());
        assert_eq!(leader.leader, leader.member_id);
        assert_eq!(follower.leader, leader.member_id);
        let waiting = self.sync(sync(&follower.member_id, follower.generation, &[]));
        let assigned = [(leader.member_id.as_str(), "L"), (follower.member_id.as_str(), "F")];
        let own = self.sync_now(sync(&leader.member_id, leader.generation, &assigned));
        assert_eq!(own.assignment, Bytes::from("L"));
        assert_eq!(self.synced(waiting).unwrap().assignment, Bytes::from("F"));
        assert_eq!(self.state(), GroupState::Stable);
        (leader.member_id, follower.member_id, leader.generation)
    }

    /// One member in a stable group: its id and the generation.
    fn single(&mut self) -> (String, i32) {
        let joined = self.join_now(dynamic(""));
        let assigned = [(joined.member_id.as_str(), "L")];
        assert!(self.sync_now(sync(&joined.member_id, joined.generation, &assigned)).error.is_none());
        (joined.member_id, joined.generation)
    }

    /// The broker was killed and started again, `millis` later.
    fn restart(&mut self, millis: u64) {
        let settings = Settings { groups: self.settings.clone(), ..Settings::default() };
        let journal = self.journal.iter().map(|record| Record::decode(record.encode()).unwrap());
        let now = Now { since_start: Millis(0), wall: self.now.wall + i64::try_from(millis).unwrap() };
        let mut out = Effects::new();
        self.groups = Coordinators::restore(settings, now, journal, &mut out).groups;
        assert!(out.answers.is_empty() && out.records.is_empty());
        self.now = now;
    }
}

/// A dynamic member that supports `range` alone and is not asked to join twice.
fn dynamic(member_id: &str) -> JoinRequest {
    JoinRequest {
        group: "g".to_owned(),
        member_id: member_id.to_owned(),
        instance_id: None,
        client_id: "client".to_owned(),
        client_host: "127.0.0.1".to_owned(),
        session_timeout: SESSION,
        rebalance_timeout: REBALANCE,
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol("range", subscription(&["t"]))],
        member_id_required: false,
        knows_skip_assignment: false,
    }
}

/// A static member.
fn fixed(member_id: &str, instance_id: &str) -> JoinRequest {
    JoinRequest { instance_id: Some(instance_id.to_owned()), ..dynamic(member_id) }
}

fn protocol(name: &str, metadata: Bytes) -> JoinProtocol {
    JoinProtocol { name: name.to_owned(), metadata }
}

/// The metadata of a consumer that subscribes to these topics.
fn subscription(topics: &[&str]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(1);
    bytes.put_i32(i32::try_from(topics.len()).unwrap());
    for topic in topics {
        bytes.put_i16(i16::try_from(topic.len()).unwrap());
        bytes.put_slice(topic.as_bytes());
    }
    bytes.put_slice(b"and what later versions add");
    bytes.freeze()
}

fn sync(member_id: &str, generation: i32, assignments: &[(&str, &'static str)]) -> SyncRequest {
    let assigned = |(member_id, bytes): &(&str, &'static str)| ((*member_id).to_owned(), Bytes::from(*bytes));
    SyncRequest {
        group: "g".to_owned(),
        generation,
        member_id: member_id.to_owned(),
        instance_id: None,
        protocol_type: None,
        protocol: None,
        assignments: assignments.iter().map(assigned).collect(),
    }
}

fn commit(partition: i32, offset: i64) -> OffsetCommit {
    OffsetCommit {
        partition: TopicPartition::new("t", partition),
        offset,
        leader_epoch: 7,
        metadata: Some(format!("at {offset}")),
    }
}
