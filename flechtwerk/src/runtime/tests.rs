//! A whole run against a cluster in memory that does what a test asks of it: what a real one does too seldom.

mod ends;
mod turns;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::testing::LONG;
use super::*;
use crate::BoxError;
use crate::demo::{COUNT, ENRICH};
use crate::format::ChangelogRecord;
use crate::glue::{
    AnyStage, BoxFuture, Env, Failure, FailureKind, Outputs, RawRecord, Round, RoundEnd, StageInfo,
};
use crate::naming::{Mapping, names};
use crate::observe::{Health, Restores};
use crate::port::{
    BrokerError, Clients, Committed, ErrorKind, Group, GroupEvent, OffsetCommit, Producer, ProducerFactory,
    Queue, Reader, ReaderKind, Taken, TopicNow, TopicPartition, Unanswered, Wake, Watermarks,
};
use crate::store::MemoryStores;

const TRANSACTION_TIMEOUT: Duration = Duration::from_millis(20);

fn error(kind: ErrorKind, code: &str) -> BrokerError {
    BrokerError { kind, code: code.into(), text: format!("{code} on purpose"), output: None, size: None }
}

/// What a commit of records does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Commit {
    Fine,
    /// It takes longer than the transaction may, and the broker has ended it.
    TooLong,
    /// An output topic is not known.
    Unknown,
    /// It is not done, however often it is asked for.
    Late,
    /// Records were not delivered in time.
    Expired,
    /// It is done when the test says so.
    Held,
}

type Events = Arc<dyn Fn(GroupEvent) + Send + Sync>;

#[derive(Default)]
struct Inside {
    events: Option<Events>,
    committed: BTreeMap<TopicPartition, Committed>,
    /// Positions of the commits of records that succeeded.
    offsets: Vec<i64>,
    /// Of the commits of records; the last one stands for all that follow.
    script: Vec<Commit>,
    /// Commits of records that were tried, and that succeeded.
    tried: usize,
    fine: usize,
    /// Questions about topics that are yet to be answered by a broker that does not know them.
    unknown: usize,
    /// A topic that no broker knows.
    gone: Option<&'static str>,
    asked: usize,
    fences: usize,
    /// What is held is done.
    released: bool,
    /// The function has failed.
    failed: bool,
    /// Where a partition ends behind its records, as far as that is told.
    end: Option<i64>,
    /// That was told.
    ended: bool,
    /// How many commits had succeeded when the group was left.
    left_after: Option<usize>,
}

#[derive(Clone, Default)]
struct World(Arc<Mutex<Inside>>);

impl World {
    fn with<T>(&self, look: impl FnOnce(&mut Inside) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn known<T>(&self, answer: T) -> Result<T, BrokerError> {
        self.with(|inside| {
            inside.asked += 1;
            if inside.unknown == 0 {
                return Ok(answer);
            }
            inside.unknown -= 1;
            Err(error(ErrorKind::Hopeless, "UNKNOWN_TOPIC_OR_PART"))
        })
    }

    fn tell(&self, event: GroupEvent) {
        let events = self.with(|inside| inside.events.clone());
        events.expect("nobody has joined")(event);
    }

    #[track_caller]
    fn wait(&self, what: &str, condition: impl Fn(&Inside) -> bool) {
        let until = Instant::now() + LONG;
        while !self.with(|inside| condition(inside)) {
            assert!(Instant::now() < until, "{what} did not happen");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Clients for World {
    fn join(
        &self,
        _: &str,
        topics: &[Arc<str>],
        events: Box<dyn Fn(GroupEvent) + Send + Sync>,
    ) -> Result<Arc<dyn Group>, BrokerError> {
        let all = topics.iter().map(|topic| TopicPartition { topic: topic.clone(), partition: 0 });
        events(GroupEvent::Assigned(all.collect()));
        self.with(|inside| inside.events = Some(Arc::from(events)));
        Ok(Arc::new(self.clone()))
    }

    fn reader(&self, _: &str, _: ReaderKind) -> Result<Arc<dyn Reader>, BrokerError> {
        Ok(Arc::new(self.clone()))
    }

    fn producers(&self) -> Arc<dyn ProducerFactory> {
        Arc::new(self.clone())
    }
}

impl Group for World {
    fn committed(&self, partitions: &[TopicPartition], _: Duration) -> Result<Vec<Committed>, BrokerError> {
        let none = |at: &TopicPartition| Committed { at: at.clone(), offset: None, metadata: String::new() };
        let one = |inside: &Inside, at| inside.committed.get(at).cloned().unwrap_or_else(|| none(at));
        Ok(self.with(|inside| partitions.iter().map(|at| one(inside, at)).collect()))
    }

    fn subscriptions(&self, _: Duration) -> Result<Vec<(String, Vec<String>)>, BrokerError> {
        Ok(Vec::new())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn leave(&self, _: bool, _: Duration) -> Result<(), BrokerError> {
        self.with(|inside| inside.left_after = Some(inside.fine));
        Ok(())
    }
}

impl Reader for World {
    fn open(
        &self,
        at: &TopicPartition,
        input: u16,
        offset: i64,
        _: Wake,
    ) -> Result<Box<dyn Queue>, BrokerError> {
        Ok(Box::new(Records { world: self.clone(), at: at.clone(), input, next: offset }))
    }

    fn watermarks(&self, at: &TopicPartition, _: Duration) -> Result<Watermarks, BrokerError> {
        // Changelogs are empty.
        let end = if at.topic.ends_with("-changelog") { 0 } else { 10 };
        self.known(Watermarks { low: 0, stable: end, high: end })
    }

    fn topic(&self, topic: &Arc<str>, _: Duration) -> Result<TopicNow, BrokerError> {
        if self.with(|inside| inside.gone == Some(&**topic)) {
            return Err(error(ErrorKind::Hopeless, "UNKNOWN_TOPIC_OR_PART"));
        }
        self.known(TopicNow { id: "id".to_owned(), partitions: 1 })
    }

    fn warm_up(&self, _: &[Arc<str>], _: Duration) {}
}

/// Ten records, one at a time.
struct Records {
    world: World,
    at: TopicPartition,
    input: u16,
    next: i64,
}

impl Queue for Records {
    fn take(&mut self, _: usize, _: usize, into: &mut Vec<RawRecord>) -> Result<Taken, BrokerError> {
        if self.next >= 10 {
            let end = self.world.with(|inside| {
                inside.ended |= inside.end.is_some();
                inside.end
            });
            return Ok(Taken { end, ..Taken::default() });
        }
        into.push(RawRecord {
            input: self.input,
            partition: self.at.partition,
            offset: self.next,
            timestamp: 0,
            key: Some(Bytes::from_static(b"k")),
            value: Some(Bytes::from_static(b"v")),
            headers: Default::default(),
        });
        self.next += 1;
        Ok(Taken { records: 1, bytes: 2, end: None })
    }

    #[cfg(feature = "broker-tests")]
    fn waiting(&self) -> usize {
        0
    }
}

struct Sender {
    world: World,
    offsets: Vec<OffsetCommit>,
}

impl ProducerFactory for World {
    fn create(&self, _: &str, _: &str) -> Result<Box<dyn Producer>, BrokerError> {
        Ok(Box::new(Sender { world: self.clone(), offsets: Vec::new() }))
    }
}

impl Producer for Sender {
    fn fence(&mut self, _: Duration) -> Result<(), BrokerError> {
        self.world.with(|inside| inside.fences += 1);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), BrokerError> {
        Ok(())
    }

    fn produce(&mut self, _: &Outputs, _: &[Arc<str>]) -> Result<(), BrokerError> {
        Ok(())
    }

    fn produce_changelog(&mut self, _: &Arc<str>, _: i32, _: &[ChangelogRecord]) -> Result<(), BrokerError> {
        Ok(())
    }

    fn send_offsets(
        &mut self,
        offsets: &[OffsetCommit],
        _: &dyn Group,
        _: Duration,
    ) -> Result<(), BrokerError> {
        self.offsets = offsets.to_vec();
        Ok(())
    }

    fn commit(&mut self, _: Duration) -> Result<(), BrokerError> {
        let first = self.offsets.iter().all(|one| one.offset == 0);
        let next = self.world.with(|inside| {
            if first {
                return Commit::Fine;
            }
            inside.tried += 1;
            if inside.script.len() > 1 { inside.script.remove(0) } else { inside.script[0] }
        });
        if next == Commit::Held {
            self.world.wait("the end of the commit", |inside| inside.released);
        }
        match next {
            Commit::Fine | Commit::Held => self.world.with(|inside| {
                inside.fine += usize::from(!first);
                inside.offsets.extend(self.offsets.first().map(|one| one.offset).filter(|_| !first));
                for one in &self.offsets {
                    let (offset, metadata) = (Some(one.offset), one.metadata.clone());
                    inside
                        .committed
                        .insert(one.at.clone(), Committed { at: one.at.clone(), offset, metadata });
                }
                Ok(())
            }),
            Commit::TooLong => {
                std::thread::sleep(TRANSACTION_TIMEOUT);
                Err(error(ErrorKind::Fenced, "INVALID_PRODUCER_EPOCH"))
            }
            Commit::Late => Err(error(ErrorKind::TimedOut, "_TIMED_OUT")),
            Commit::Expired => Err(error(ErrorKind::Abortable, "_MSG_TIMED_OUT")),
            Commit::Unknown => {
                let text = "topic `alerts` does not exist".to_owned();
                Err(BrokerError { text, ..error(ErrorKind::Hopeless, "UNKNOWN_TOPIC_OR_PART") })
            }
        }
    }

    fn abort(&mut self, _: Duration) -> Result<(), BrokerError> {
        Ok(())
    }

    fn delivery_error(&mut self) -> Option<BrokerError> {
        None
    }

    fn unanswered(&self) -> Unanswered {
        Unanswered::default()
    }

    fn serve(&mut self) {}
}

/// A stage that reads and does nothing.
struct Reads(&'static StageInfo);

impl AnyStage for Reads {
    fn info(&self) -> &'static StageInfo {
        self.0
    }

    fn key(&self, _: &RawRecord) -> Result<Bytes, (FailureKind, BoxError)> {
        Ok(Bytes::new())
    }

    fn round<'a>(
        &'a self,
        _: &'a mut Round,
        _: &'a mut Outputs,
        _: &'a Env,
        _: usize,
    ) -> BoxFuture<'a, Result<RoundEnd, Failure>> {
        Box::pin(async { Ok(RoundEnd::Done) })
    }
}

static ENRICHES: Reads = Reads(&ENRICH);
static COUNTS: Reads = Reads(&COUNT);

/// A run on a thread of its own.
struct Started {
    stopper: Stopper,
    ended: Receiver<Result<(), RunError>>,
}

impl Started {
    #[track_caller]
    fn end(&self) -> Result<(), RunError> {
        self.ended.recv_timeout(LONG).expect("it did not end")
    }

    #[track_caller]
    fn failure(&self) -> String {
        self.end().expect_err("it ended well").0
    }
}

fn start(world: &World, stage: &'static Reads, broker_timeout: Duration) -> Started {
    start_with(world, stage, stage.0, Limits { broker_timeout, ..limits() })
}

fn limits() -> Limits {
    Limits { transaction_timeout: TRANSACTION_TIMEOUT, ..testing::limits() }
}

fn start_with(
    world: &World,
    stage: &'static dyn AnyStage,
    info: &'static StageInfo,
    limits: Limits,
) -> Started {
    let unmapped = BTreeMap::new();
    let mapping = Mapping::of("", &unmapped);
    let names = names("demo", &[info], mapping).unwrap().remove(0);
    let changelog = names.changelog.clone().map(|topic| Changelog { topic, id: "id".into(), partitions: 1 });
    let plan = Plan {
        stages: vec![StagePlan { stage, names, changelog, partitions: 1, tables: Vec::new() }],
        instance_id: None,
        limits,
        stay_in_group: false,
        shutdown_timeout: LONG,
        clients: Arc::new(world.clone()),
        stores: Arc::new(MemoryStores::default()),
        schemas: None,
        health: Health::default(),
        restores: Restores::new(false),
    };
    let pool = crate::resource::Pool::make(&[], &crate::resource::Said::default()).unwrap();
    let (told, ended) = channel();
    let (handed, stopper) = channel();
    std::thread::spawn(move || told.send(run(plan, pool, |stopper| drop(handed.send(stopper)))));
    Started { stopper: stopper.recv_timeout(LONG).unwrap(), ended }
}

fn world(script: &[Commit], unknown: usize) -> World {
    let world = World::default();
    world.with(|inside| (inside.script, inside.unknown) = (script.to_vec(), unknown));
    world
}

/// S6.2f
#[test]
fn a_batch_that_never_fits_into_the_transaction_timeout_stops_the_stage_naming_both_settings() {
    let world = world(&[Commit::TooLong], 0);
    let text = start(&world, &ENRICHES, LONG).failure();
    for part in
        ["stage enrich", "transaction_timeout (20ms)", "--transaction-timeout", "--max-poll-records (5)"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(world.with(|inside| (inside.tried, inside.fine)), (2, 0));
}

/// One that took too long may have been stopped together with its process.
#[test]
fn a_batch_that_took_too_long_once_is_sent_again() {
    let script = [Commit::TooLong, Commit::Fine, Commit::TooLong, Commit::Fine];
    let world = world(&script, 0);
    let started = start(&world, &ENRICHES, LONG);
    world.wait("two commits", |inside| inside.fine >= 2);
    started.stopper.stop();
    started.end().unwrap();
}

/// S5.4
#[test]
fn a_failure_of_the_membership_stops_the_process() {
    let world = world(&[Commit::Fine], 0);
    let started = start(&world, &ENRICHES, LONG);
    world.wait("a commit", |inside| inside.fine > 0);
    world.tell(GroupEvent::Failed(error(ErrorKind::Fatal, "_FATAL")));
    let text = started.failure();
    assert!(
        text.contains("stage enrich: can't stay a member of the group") && text.contains("_FATAL"),
        "{text}"
    );
}

#[test]
fn an_input_that_is_deleted_stops_the_process_naming_it() {
    let world = world(&[Commit::Fine], 0);
    let started = start(&world, &ENRICHES, Duration::from_millis(50));
    world.wait("a commit", |inside| inside.fine > 0);
    // Not known for a moment only.
    let asked = world.with(|inside| inside.asked);
    world.tell(GroupEvent::UnknownTopic);
    world.wait("a look at the topics", |inside| inside.asked > asked);
    world.with(|inside| inside.unknown = usize::MAX);
    world.tell(GroupEvent::UnknownTopic);
    let text = started.failure();
    assert!(text.contains("input topic words has not been there for --broker-timeout (50ms)"), "{text}");
}

#[test]
fn a_topic_that_is_new_to_a_broker_is_asked_for_again() {
    let world = world(&[Commit::Unknown, Commit::Unknown, Commit::Fine], 3);
    let started = start(&world, &COUNTS, LONG);
    world.wait("a commit", |inside| inside.fine > 0);
    started.stopper.stop();
    started.end().unwrap();
}

#[test]
fn topics_that_are_deleted_stop_the_process_naming_them() {
    let limit = Duration::from_millis(50);
    let text = start(&world(&[Commit::Unknown], 0), &ENRICHES, limit).failure();
    for part in ["stage enrich", "`alerts` does not exist", "--broker-timeout (50ms)", "deleted it"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Before the client finds out by itself.
    let text = start(&world(&[Commit::Late], 0), &ENRICHES, limit).failure();
    for part in
        ["could not send a transaction of partition 0 within --broker-timeout (50ms)", "have a leader"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let late = world(&[Commit::Late], 0);
    late.with(|inside| inside.gone = Some("alerts"));
    let text = start(&late, &ENRICHES, limit).failure();
    assert!(text.contains("could not send a transaction") && text.contains("`alerts` was there"), "{text}");
    let text = start(&world(&[Commit::Fine], usize::MAX), &COUNTS, limit).failure();
    for part in ["stage count", "changelog demo-count-changelog/0", "deleted it"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// S6.2g: the coordinator is well, so that each one is aborted and the task starts anew.
#[test]
fn a_stage_whose_transactions_keep_aborting_stops() {
    let world = world(&[Commit::Expired], 0);
    let text = start(&world, &ENRICHES, Duration::from_millis(50)).failure();
    for part in ["could not send a transaction of partition 0", "_MSG_TIMED_OUT", "have a leader"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(world.with(|inside| inside.tried) > 1, "it is sent again");
}
