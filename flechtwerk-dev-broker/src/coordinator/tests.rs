//! Both coordinators together, as a broker uses them; and numbers that no sane client sends.

use bytes::Bytes;
use proptest::prelude::*;

use super::group::{
    CommitRequest, JoinProtocol, JoinRequest, LeavingMember, OffsetCommit, SyncRequest, TxnCommitRequest,
};
use super::transaction::{InitRequest, ListFilter};
use super::*;

const NONE: Producer = Producer { id: -1, epoch: -1 };

/// What a broker does with effects, but for answers: it keeps records, and writes markers when told to.
struct Broker {
    coordinators: Coordinators,
    now: Now,
    journal: Vec<Record>,
    markers: Vec<WriteMarkers>,
}

impl Broker {
    fn new() -> Self {
        let now = Now { since_start: Millis(0), wall: 1_700_000_000_000 };
        let coordinators = Coordinators::new(Settings::default());
        Self { coordinators, now, journal: Vec::new(), markers: Vec::new() }
    }

    fn take(&mut self, out: Effects) {
        self.journal.extend(out.records);
        self.markers.extend(out.markers);
    }

    fn init(&mut self) -> Result<Producer, ErrorCode> {
        let request =
            InitRequest { transactional_id: Some("x".to_owned()), timeout_ms: 60_000, current: NONE };
        let mut out = Effects::new();
        let answer = self.coordinators.transactions.init_producer_id(self.now, &request, &mut out);
        self.take(out);
        answer
    }

    /// One transaction that commits an offset to the group `g`, up to its end.
    fn offsets_in_transaction(&mut self, producer: Producer, offset: i64) -> ErrorCode {
        let mut out = Effects::new();
        let transactions = &mut self.coordinators.transactions;
        let added = transactions.add_offsets(self.now, "x", producer, "g", &mut out);
        let verified = self.coordinators.transactions.verify_group("x", producer, "g");
        let mut code = if added.is_none() { verified } else { added };
        if code.is_none() {
            let offsets = vec![OffsetCommit {
                partition: TopicPartition::new("t", 0),
                offset,
                leader_epoch: -1,
                metadata: None,
            }];
            let request = TxnCommitRequest {
                group: "g".to_owned(),
                producer,
                generation: -1,
                member_id: String::new(),
                instance_id: None,
                offsets,
            };
            code = self.coordinators.groups.txn_commit_offsets(self.now, request, &mut out)[0];
        }
        self.take(out);
        code
    }

    fn end(&mut self, producer: Producer, commit: bool) -> ErrorCode {
        let mut out = Effects::new();
        let code = self.coordinators.transactions.end(self.now, "x", producer, commit, &mut out);
        self.take(out);
        code
    }

    /// Completes the groups of decided transactions; then the transactions themselves, unless the broker dies before.
    fn write_markers(&mut self, dies: bool) {
        for markers in std::mem::take(&mut self.markers) {
            let mut out = Effects::new();
            for group in &markers.groups {
                let groups = &mut self.coordinators.groups;
                groups.complete_txn_offsets(self.now, group, markers.producer, markers.commit, &mut out);
            }
            if !dies {
                self.coordinators.transactions.markers_written(self.now, &markers, &mut out);
            }
            self.take(out);
        }
    }

    fn restart(&mut self) {
        let mut out = Effects::new();
        self.coordinators =
            Coordinators::restore(Settings::default(), self.now, self.journal.clone(), &mut out);
        self.markers.clear();
        self.take(out);
    }

    fn offset(&self) -> (i64, ErrorCode) {
        let partitions = [TopicPartition::new("t", 0)];
        let fetched = self.coordinators.groups.fetch_offsets("g", Some(&partitions), true);
        (fetched[0].offset, fetched[0].error)
    }
}

#[test]
fn offsets_follow_their_transaction() {
    let mut broker = Broker::new();
    let producer = broker.init().unwrap();
    for (offset, commit, expected) in [(5, true, 5), (9, false, 5), (7, true, 7)] {
        assert_eq!(broker.offsets_in_transaction(producer, offset), ErrorCode::None);
        assert_eq!(broker.offset(), (-1, ErrorCode::UnstableOffsetCommit));
        assert_eq!(broker.end(producer, commit), ErrorCode::None);
        assert_eq!(broker.offset(), (-1, ErrorCode::UnstableOffsetCommit), "decided, but not written");
        broker.write_markers(false);
        assert_eq!(broker.offset(), (expected, ErrorCode::None));
    }
}

#[test]
fn a_takeover_drops_the_pending_offsets_of_the_one_before() {
    let mut broker = Broker::new();
    let first = broker.init().unwrap();
    assert_eq!(broker.offsets_in_transaction(first, 5), ErrorCode::None);
    assert_eq!(broker.init(), Err(ErrorCode::ConcurrentTransactions));
    broker.write_markers(false);
    let second = broker.init().unwrap();
    assert_eq!(broker.offset(), (-1, ErrorCode::None));
    assert_eq!(broker.offsets_in_transaction(first, 6), ErrorCode::ProducerFenced);
    assert_eq!(broker.offsets_in_transaction(second, 7), ErrorCode::None);
    assert_eq!(broker.end(second, true), ErrorCode::None);
    broker.write_markers(false);
    assert_eq!(broker.offset(), (7, ErrorCode::None));
}

#[test]
fn a_broker_that_dies_between_the_markers_completes_them_after_its_start() {
    for commit in [true, false] {
        for dies in [true, false] {
            let mut broker = Broker::new();
            let producer = broker.init().unwrap();
            assert_eq!(broker.offsets_in_transaction(producer, 5), ErrorCode::None);
            assert_eq!(broker.end(producer, commit), ErrorCode::None);
            if dies {
                broker.write_markers(true);
            }
            broker.restart();
            assert_eq!(broker.init(), Err(ErrorCode::ConcurrentTransactions));
            broker.write_markers(false);
            assert_eq!(broker.offset(), (if commit { 5 } else { -1 }, ErrorCode::None));
            assert_eq!(broker.end(producer, commit), ErrorCode::None);
            assert_eq!(broker.offsets_in_transaction(producer, 6), ErrorCode::None);
        }
    }
}

#[test]
fn a_snapshot_says_the_same_as_the_journal() {
    let mut broker = Broker::new();
    let producer = broker.init().unwrap();
    for offset in 0..20 {
        broker.offsets_in_transaction(producer, offset);
        broker.end(producer, true);
        broker.write_markers(false);
    }
    broker.offsets_in_transaction(producer, 20);
    let snapshot = broker.coordinators.snapshot();
    assert!(snapshot.len() < 10 && broker.journal.len() > 100);
    broker.journal = snapshot;
    broker.restart();
    assert_eq!(broker.end(producer, true), ErrorCode::None);
    broker.write_markers(false);
    assert_eq!(broker.offset(), (20, ErrorCode::None));
}

/// The ends of a range, and what is around zero.
fn wild<T: Copy + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(values)
}

fn wild_i32() -> impl Strategy<Value = i32> {
    wild(&[i32::MIN, -1, 0, 1, 2, 6_000, 60_000, i32::MAX])
}

fn wild_i64() -> impl Strategy<Value = i64> {
    wild(&[i64::MIN, -1, 0, 1, 2, i64::MAX])
}

fn wild_i16() -> impl Strategy<Value = i16> {
    wild(&[i16::MIN, -1, 0, 1, i16::MAX - 1, i16::MAX])
}

fn name() -> impl Strategy<Value = String> {
    wild(&["", "a", "b"]).prop_map(str::to_owned)
}

/// Subscriptions whose lengths lie, and one that is none.
const METADATA: [&[u8]; 4] =
    [b"", &[0, 0, 255, 255, 255, 255], &[0, 0, 127, 255, 255, 255, 255, 255], &[0, 1, 0, 0, 0, 1, 0]];

fn wild_bytes() -> impl Strategy<Value = Bytes> {
    wild(&METADATA).prop_map(Bytes::from_static)
}

#[derive(Debug, Clone)]
struct Wild {
    call: usize,
    names: (String, String, Option<String>, String),
    numbers: (i32, i32, i32),
    longs: (i64, i64),
    epoch: i16,
    flags: (bool, bool),
    bytes: Bytes,
    /// The clocks go anywhere, the monotonic one forwards.
    pass: u64,
    wall: i64,
}

fn wild_call() -> impl Strategy<Value = Wild> {
    let names = (name(), name(), prop::option::of(name()), name());
    let numbers = (wild_i32(), wild_i32(), wild_i32());
    let times = (wild(&[0, 1, 10_000, 1 << 40, u64::MAX / 4]), wild_i64());
    let flags = (any::<bool>(), any::<bool>());
    (0..16usize, names, numbers, (wild_i64(), wild_i64()), wild_i16(), flags, wild_bytes(), times).prop_map(
        |(call, names, numbers, longs, epoch, flags, bytes, (pass, wall))| Wild {
            call,
            names,
            numbers,
            longs,
            epoch,
            flags,
            bytes,
            pass,
            wall,
        },
    )
}

impl Wild {
    fn run(self, broker: &mut Broker) {
        let (group, member_id, instance_id, other) = self.names;
        let (generation, session_timeout, rebalance_timeout) = self.numbers;
        let producer = Producer::new(self.longs.0, self.epoch);
        let partition = TopicPartition::new(other.clone(), generation);
        broker.now.wall = self.wall;
        broker.now.since_start = broker.now.since_start.after(Millis(self.pass));
        let (now, mut out) = (broker.now, Effects::new());
        let Coordinators { groups, transactions } = &mut broker.coordinators;
        let offsets = vec![OffsetCommit {
            partition: partition.clone(),
            offset: self.longs.1,
            leader_epoch: rebalance_timeout,
            metadata: Some("☃".repeat(usize::from(self.flags.0) * 5_000)),
        }];
        match self.call {
            0..=2 => {
                let request = JoinRequest {
                    group,
                    member_id,
                    instance_id,
                    client_id: other.clone(),
                    client_host: String::new(),
                    session_timeout,
                    rebalance_timeout,
                    protocol_type: if self.flags.0 { "consumer".to_owned() } else { other.clone() },
                    protocols: vec![JoinProtocol { name: other, metadata: self.bytes }],
                    member_id_required: self.flags.1,
                    knows_skip_assignment: self.flags.0,
                };
                groups.join(now, Ticket(0), request, &mut out);
            }
            3 => {
                let assignments = vec![(other, self.bytes)];
                let (protocol_type, protocol) = (None, None);
                let request = SyncRequest {
                    group,
                    generation,
                    member_id,
                    instance_id,
                    protocol_type,
                    protocol,
                    assignments,
                };
                groups.sync(now, Ticket(0), request, &mut out);
            }
            4 => {
                groups.heartbeat(now, &group, &member_id, instance_id.as_deref(), generation);
            }
            5 => {
                let leaving = LeavingMember { member_id, instance_id };
                let _ = groups.leave(now, &group, &[leaving], &mut out);
            }
            6 => {
                let request = CommitRequest { group, generation, member_id, instance_id, offsets };
                groups.commit_offsets(now, request, &mut out);
            }
            7 => {
                let request =
                    TxnCommitRequest { group, producer, generation, member_id, instance_id, offsets };
                groups.txn_commit_offsets(now, request, &mut out);
            }
            8 => groups.complete_txn_offsets(now, &group, producer, self.flags.0, &mut out),
            9 => {
                let _ = groups.delete_offsets(now, &group, &[partition], &mut out);
                groups.delete_group(&group, &mut out);
                groups.drop_topic(&other, &mut out);
            }
            10 => {
                let request = InitRequest {
                    transactional_id: instance_id,
                    timeout_ms: session_timeout,
                    current: producer,
                };
                let _ = transactions.init_producer_id(now, &request, &mut out);
            }
            11 => {
                transactions.add_partitions(now, &group, producer, &[partition], &mut out);
            }
            12 => {
                transactions.add_offsets(now, &group, producer, &other, &mut out);
            }
            13 => {
                transactions.end(now, &group, producer, self.flags.0, &mut out);
            }
            14 => {
                let filter = ListFilter { duration_ms: self.longs.1, ..ListFilter::default() };
                transactions.list(now, &filter);
                transactions.verify_partition(&group, producer, &partition);
                groups.list(&[other], &[]);
            }
            _ => {
                groups.tick(now, &mut out);
                transactions.tick(now, &mut out);
            }
        }
        broker.take(out);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_on_any_numbers(calls in prop::collection::vec(wild_call(), 1..60)) {
        let settings = Settings {
            groups: group::GroupSettings {
                min_session_timeout: Millis(0),
                max_session_timeout: Millis(u64::MAX),
                initial_rebalance_delay: Millis(1),
                offsets_retention: Some(Millis(1)),
                ..Default::default()
            },
            transactions: transaction::TransactionSettings {
                max_timeout: Millis(u64::MAX),
                id_expiration: Some(Millis(1)),
                first_producer_id: 0,
            },
        };
        let mut broker = Broker::new();
        broker.coordinators = Coordinators::new(settings);
        for call in calls {
            call.run(&mut broker);
            broker.write_markers(false);
            let _ = broker.coordinators.groups.next_deadline();
            let _ = broker.coordinators.transactions.next_deadline();
        }
        broker.restart();
    }
}
