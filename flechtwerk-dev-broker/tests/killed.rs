//! SIGKILL again and again, at any moment, while clients work: what was acknowledged is there after the restart, what was aborted is
//! never seen, and transactions, offsets and members go on. `KILLS=300 SEED=7` makes it longer, and the same again.

#[path = "support/program.rs"]
mod program;
mod support;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    HeartbeatRequest, JoinGroupRequest, OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;

use program::{Running, program};
use support::records::{committed, read};
use support::transactions::Producer;
use support::*;

const KILLS: u64 = 30;
/// Between two kills the clients get so many answers at most.
const MOST_ANSWERS: u64 = 60;
const KEYS: u64 = 7;
const CONCURRENT_TRANSACTIONS: i16 = 51;

/// What the threads share.
struct World {
    address: SocketAddr,
    answers: AtomicU64,
    /// The writer begins no further transaction.
    enough: AtomicBool,
    /// The writer has ended: nothing more comes.
    written: AtomicBool,
}

impl World {
    fn connect(&self, name: &str) -> Client {
        let mut client = None;
        until("the broker is back", || {
            client = Client::try_named(self.address, name).ok();
            client.is_some()
        });
        client.unwrap()
    }

    /// Counts an answer; an error is that of a broker that was killed.
    fn answered<T>(&self, answer: io::Result<T>) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.answers.fetch_add(1, Ordering::Relaxed);
                Some(answer)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                panic!("no answer, and no end of the connection")
            }
            Err(_) => None,
        }
    }
}

/// Numbers that follow from a seed.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    /// One of so many.
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % count
    }
}

/// What the broker has acknowledged.
#[derive(Default)]
struct Acknowledged {
    /// Numbers of transactions, in their order.
    committed: Vec<u64>,
    aborted: usize,
    /// Instances of the writer that were given up with a transaction open.
    given_up: usize,
    /// Offsets and values of records outside of transactions.
    plain: Vec<(i64, Vec<u8>)>,
}

/// The writer's instance has ended in the middle of a transaction.
struct GivenUp;

struct Writer<'a> {
    world: &'a World,
    dice: Dice,
    producer: Producer,
    acknowledged: Acknowledged,
}

impl Writer<'_> {
    fn new(world: &World, dice: Dice) -> Writer<'_> {
        let producer = Producer::unknown(world.connect("writer"), "writer");
        let mut writer = Writer { world, dice, producer, acknowledged: Acknowledged::default() };
        writer.init();
        writer
    }

    /// A new instance: what the one before has left open is aborted.
    fn init(&mut self) {
        loop {
            match self.world.answered(self.producer.init()) {
                Some(0) => return,
                Some(error) => assert_eq!(error, CONCURRENT_TRANSACTIONS),
                None => self.producer.client = self.world.connect("writer"),
            }
        }
    }

    /// Does a step until it is answered. When the broker was killed, the instance goes on with the same step, or is given up.
    fn step<T>(&mut self, step: impl Fn(&mut Producer) -> io::Result<Result<T, i16>>) -> Result<T, GivenUp> {
        loop {
            match self.world.answered(step(&mut self.producer)) {
                Some(Ok(done)) => return Ok(done),
                Some(Err(error)) => assert_eq!(error, CONCURRENT_TRANSACTIONS),
                None => {
                    self.producer.client = self.world.connect("writer");
                    if self.dice.below(3) == 0 {
                        return Err(GivenUp);
                    }
                }
            }
        }
    }

    fn transaction(&mut self, number: u64, commit: bool) -> Result<(), GivenUp> {
        let done = |code: i16| if code == 0 { Ok(()) } else { Err(code) };
        self.step(|producer| producer.add("events", 0).map(done))?;
        self.step(|producer| producer.add("table", 0).map(done))?;
        let value = value(number);
        let records = [(None, &value[..]), (None, &b"second"[..])];
        self.step(|producer| producer.send("events", 0, &records))?;
        let key = (number % KEYS).to_string();
        self.step(|producer| producer.send("table", 0, &[(Some(key.as_bytes()), &value)]))?;
        let metadata = "m".repeat(2_000);
        self.step(|producer| {
            producer.commit_offset("work", ("events", 0), number as i64 + 1, &metadata).map(done)
        })?;
        self.step(|producer| producer.end(commit).map(done))
    }

    /// A record outside of transactions. Without an answer it is there or not.
    fn plain(&mut self, number: u64) {
        let value = value(number);
        let request = produce("plain", 0, batch(&value));
        match self.world.answered(self.producer.client.try_call(7, &request)) {
            None => self.producer.client = self.world.connect("writer"),
            Some(answer) => {
                let partition = &answer.responses[0].partition_responses[0];
                assert_eq!(partition.error_code, 0);
                self.acknowledged.plain.push((partition.base_offset, value));
            }
        }
    }

    fn work(mut self) -> Acknowledged {
        for number in 0.. {
            if self.world.enough.load(Ordering::Relaxed) {
                break;
            }
            let commit = number % 4 != 3;
            match self.transaction(number, commit) {
                Ok(()) if commit => self.acknowledged.committed.push(number),
                Ok(()) => self.acknowledged.aborted += 1,
                Err(GivenUp) => {
                    self.init();
                    self.acknowledged.given_up += 1;
                    // Its offset is part of it: that tells whether it was committed before.
                    let offset = committed_offset(self.world, &mut self.producer.client, "work");
                    if offset == number as i64 + 1 {
                        assert!(commit, "transaction {number} was to be aborted");
                        self.acknowledged.committed.push(number);
                    } else {
                        let last = self.acknowledged.committed.last().map_or(-1, |last| *last as i64 + 1);
                        assert_eq!(offset, last, "the offset of the last transaction that was committed");
                    }
                }
            }
            if self.dice.below(2) == 0 {
                self.plain(number);
            }
        }
        self.acknowledged
    }
}

/// The number of a transaction as a record's value; some are of many pages, so that a kill can tear them.
fn value(number: u64) -> Vec<u8> {
    let mut value = number.to_string();
    if number % 8 == 5 {
        write!(value, " {}", "v".repeat(200_000)).unwrap();
    }
    value.into_bytes()
}

fn committed_offset(world: &World, client: &mut Client, group: &str) -> i64 {
    let wanted =
        OffsetFetchRequestTopic::default().with_name(topic("events")).with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default()
        .with_group_id(text(group).into())
        .with_require_stable(true)
        .with_topics(Some(vec![wanted]));
    loop {
        match world.answered(client.try_call(7, &request)) {
            None => *client = world.connect("offsets"),
            Some(answer) => {
                let partition = &answer.topics[0].partitions[0];
                assert_eq!((answer.error_code, partition.error_code), (0, 0));
                return partition.committed_offset;
            }
        }
    }
}

/// Reads committed records as they come, commits where it is, and is a member of a group all the while.
struct Reader<'a> {
    world: &'a World,
    client: Client,
    member: StrBytes,
    generation: i32,
    position: i64,
    seen: Vec<Vec<u8>>,
    /// The last position that was committed, and the last one for which that was asked.
    committed: (i64, i64),
}

impl Reader<'_> {
    fn new(world: &World) -> Reader<'_> {
        let mut client = world.connect("reader");
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(text("range"))
            .with_metadata(Bytes::from_static(b"metadata"));
        let join = JoinGroupRequest::default()
            .with_group_id(text("readers").into())
            .with_session_timeout_ms(600_000)
            .with_rebalance_timeout_ms(600_000)
            .with_protocol_type(text("consumer"))
            .with_protocols(vec![protocol]);
        let joined = client.call(3, &join);
        let assignment = SyncGroupRequestAssignment::default().with_member_id(joined.member_id.clone());
        let sync = SyncGroupRequest::default()
            .with_group_id(text("readers").into())
            .with_generation_id(joined.generation_id)
            .with_member_id(joined.member_id.clone())
            .with_assignments(vec![assignment]);
        assert_eq!(client.call(3, &sync).error_code, 0);
        let (member, generation) = (joined.member_id, joined.generation_id);
        Reader { world, client, member, generation, position: 0, seen: Vec::new(), committed: (-1, -1) }
    }

    fn read(&mut self) -> Option<()> {
        let request = fetch("events", 0, self.position, 20).with_isolation_level(1);
        let mut answer = self.world.answered(self.client.try_call(11, &request))?;
        let partition = answer.responses[0].partitions.remove(0);
        assert_eq!(partition.error_code, 0);
        let aborted = partition.aborted_transactions.unwrap_or_default();
        let aborted: Vec<_> = aborted.iter().map(|one| (one.producer_id.0, one.first_offset)).collect();
        let batches = read(partition.records.unwrap_or_default());
        let next = batches.last().map_or(self.position, |batch| batch.next_offset);
        let records = committed(batches, &aborted);
        self.seen.extend(records.into_iter().map(|(_, _, value)| value));
        self.position = next;
        Some(())
    }

    fn commit(&mut self) -> Option<()> {
        let partition = OffsetCommitRequestPartition::default()
            .with_partition_index(0)
            .with_committed_offset(self.position);
        let events =
            OffsetCommitRequestTopic::default().with_name(topic("events")).with_partitions(vec![partition]);
        let request = OffsetCommitRequest::default()
            .with_group_id(text("readers").into())
            .with_generation_id_or_member_epoch(self.generation)
            .with_member_id(self.member.clone())
            .with_topics(vec![events]);
        self.committed.1 = self.position;
        let answer = self.world.answered(self.client.try_call(2, &request))?;
        assert_eq!(answer.topics[0].partitions[0].error_code, 0);
        self.committed.0 = self.position;
        Some(())
    }

    fn heartbeat(&mut self) -> Option<()> {
        let request = HeartbeatRequest::default()
            .with_group_id(text("readers").into())
            .with_generation_id(self.generation)
            .with_member_id(self.member.clone());
        let answer = self.world.answered(self.client.try_call(3, &request))?;
        assert_eq!(answer.error_code, 0, "the member is known, and its generation");
        Some(())
    }

    fn work(mut self) -> Vec<Vec<u8>> {
        loop {
            // Asked before the read, after which there is nothing more then.
            let last = self.world.written.load(Ordering::Relaxed);
            let before = self.position;
            if self.read().and_then(|()| self.commit()).and_then(|()| self.heartbeat()).is_some() {
                if last && self.position == before {
                    return self.seen;
                }
                continue;
            }
            self.client = self.world.connect("reader");
            let offset = committed_offset(self.world, &mut self.client, "readers");
            let (acknowledged, asked) = self.committed;
            assert!(offset == acknowledged || offset == asked, "{offset}, not {acknowledged} or {asked}");
            self.committed.0 = offset;
        }
    }
}

/// Below the range from which systems take ports for outgoing connections: a client that looks for a broker that is not there must not
/// find itself.
fn free_port(dice: &mut Dice) -> SocketAddr {
    loop {
        let port = 20_000 + u16::try_from(dice.below(12_000)).unwrap();
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener.local_addr().unwrap();
        }
    }
}

fn start(folder: &Path, address: SocketAddr) -> Running {
    let mut command = program();
    command.args(["--listen", &address.to_string(), "--log", "error", "--compact-every", "50ms"]);
    command.args(["--topic", "events:1", "--topic", "plain:1", "--topic", "table:1:cleanup.policy=compact"]);
    Running::of(command.arg("--data-dir").arg(folder).stderr(Stdio::inherit()))
}

/// All committed records of a partition: offsets, keys and values.
fn all(client: &mut Client, name: &str) -> Vec<(i64, Vec<u8>, Vec<u8>)> {
    let (mut position, mut all) = (0, Vec::new());
    loop {
        let request = fetch(name, 0, position, 0).with_isolation_level(1);
        let partition = client.call(11, &request).responses.remove(0).partitions.remove(0);
        assert_eq!((partition.error_code, partition.last_stable_offset), (0, partition.high_watermark));
        let aborted = partition.aborted_transactions.unwrap_or_default();
        let aborted: Vec<_> = aborted.iter().map(|one| (one.producer_id.0, one.first_offset)).collect();
        let batches = read(partition.records.unwrap_or_default());
        match batches.last() {
            None => return all,
            Some(last) => position = last.next_offset,
        }
        all.extend(committed(batches, &aborted));
    }
}

#[test]
fn a_broker_that_is_killed_at_any_moment_loses_nothing() {
    let variable = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let kills = variable("KILLS").unwrap_or(KILLS);
    let seed = variable("SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos().into()
    });
    println!("SEED={seed}");
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let folder = tempfile::tempdir().unwrap();
    let address = free_port(&mut dice);
    let mut broker = start(folder.path(), address);
    let world = World {
        address,
        answers: AtomicU64::new(0),
        enough: AtomicBool::new(false),
        written: AtomicBool::new(false),
    };

    let (acknowledged, seen) = std::thread::scope(|scope| {
        let (writer, reader) = (Writer::new(&world, dice.clone()), Reader::new(&world));
        let writing = scope.spawn(|| writer.work());
        let reading = scope.spawn(|| reader.work());
        for _ in 0..kills {
            let due = world.answers.load(Ordering::Relaxed) + 1 + dice.below(MOST_ANSWERS);
            let deadline = Instant::now() + PATIENCE;
            while world.answers.load(Ordering::Relaxed) < due
                && !writing.is_finished()
                && !reading.is_finished()
            {
                assert!(Instant::now() < deadline, "the clients stand still");
                // So often that a kill comes between any two answers.
                std::thread::sleep(Duration::from_micros(20));
            }
            broker.kill();
            broker = start(folder.path(), address);
        }
        world.enough.store(true, Ordering::Relaxed);
        let acknowledged = writing.join().unwrap();
        world.written.store(true, Ordering::Relaxed);
        (acknowledged, reading.join().unwrap())
    });

    broker.kill();
    broker = start(folder.path(), address);
    let mut client = Client::connect(broker.address);
    let wanted: Vec<Vec<u8>> =
        acknowledged.committed.iter().flat_map(|number| [value(*number), b"second".to_vec()]).collect();
    assert!(seen == wanted, "the reader has seen what was committed, and nothing else");
    let kept: Vec<Vec<u8>> = all(&mut client, "events").into_iter().map(|(_, _, value)| value).collect();
    assert!(kept == wanted, "what is kept is what was committed, and nothing else");
    let table: BTreeMap<_, _> =
        all(&mut client, "table").into_iter().map(|(_, key, value)| (key, value)).collect();
    let keyed = |number: &u64| ((number % KEYS).to_string().into_bytes(), value(*number));
    assert!(table == acknowledged.committed.iter().map(keyed).collect(), "each key's last value");
    let plain: BTreeMap<_, _> =
        all(&mut client, "plain").into_iter().map(|(at, _, value)| (at, value)).collect();
    assert!(acknowledged.plain.iter().all(|(offset, value)| plain.get(offset) == Some(value)));
    let offset = committed_offset(&world, &mut client, "work");
    assert_eq!(offset, acknowledged.committed.last().map_or(-1, |last| *last as i64 + 1));
    println!(
        "{kills} kills, {} transactions committed, {} aborted, {} given up, {} plain records",
        acknowledged.committed.len(),
        acknowledged.aborted,
        acknowledged.given_up,
        acknowledged.plain.len()
    );
}
