//! The thread of a task, beside a cluster and a store that fail as a test says.

mod fence;

use std::sync::atomic::Ordering;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::demo::{Described, MERGE, POLL, SESSIONS};
use crate::glue::{AnyStage, StateChange};
use crate::port::{BrokerError, ErrorKind, Watermarks};
use crate::runtime::context::Limits;
use crate::runtime::testing::{Cluster, LONG, Shelf, context, error, limits, record, seen};
use crate::task::{Abort, Overlay};

static STAGE: Described = Described(&SESSIONS);
static TWO_INPUTS: Described = Described(&MERGE);
static EXTRACTS: Described = Described(&POLL);

/// A task's thread whose work is done on the test's.
struct Bench {
    cluster: Cluster,
    shelf: Shelf,
    thread: Thread,
    reports: UnboundedReceiver<Report>,
}

impl Bench {
    fn new(stage: &'static dyn AnyStage, limits: Limits) -> Bench {
        let (cluster, shelf) = (Cluster::default(), Shelf::default());
        let mut context = context(stage, &cluster, limits);
        context.stores = Arc::new(shelf.clone());
        let (sender, reports) = unbounded_channel();
        let thread = Thread {
            inputs: context.input_partitions(0),
            context: Arc::new(context),
            partition: 0,
            cancel: Cancel::default(),
            reports: sender,
            producer: None,
            store: None,
            patience: Patience::default(),
            early: None,
            unknown: None,
        };
        Bench { cluster, shelf, thread, reports }
    }

    /// Does it, and gives what is reported of it.
    fn ask(&mut self, work: Work) -> Vec<Said> {
        if let Err(failure) = self.thread.carry_out(work) {
            return vec![Said::Failed(failure.message)];
        }
        std::iter::from_fn(|| self.reports.try_recv().ok()).map(said).collect()
    }

    fn send(&mut self, batch: &Arc<ClosedBatch>, paced: bool) -> Vec<Said> {
        self.ask(Work::Send { batch: batch.clone(), stamp: stamp(), positions: vec![7], paced })
    }

    /// With a producer and a store.
    fn ready(stage: &'static dyn AnyStage, limits: Limits) -> Bench {
        let mut bench = Bench::new(stage, limits);
        bench.ask(fence());
        bench.ask(Work::OpenStore { wiped: false });
        bench.cluster.calls();
        bench
    }

    fn stamp(&self) -> Option<String> {
        self.thread.store.as_ref().unwrap().stamp().unwrap()
    }
}

/// A report, as tests compare it.
#[derive(Debug, PartialEq)]
enum Said {
    Event(Event),
    Sent(BatchId, Outcome, Option<Event>),
    Store,
    Failed(String),
    Gone,
}

fn said(report: Report) -> Said {
    match report {
        Report::Event(event) => Said::Event(event),
        Report::Sent { id, outcome, applied } => Said::Sent(id, outcome, applied),
        Report::Store(_) => Said::Store,
        Report::Failed(failure) => Said::Failed(failure.message),
        Report::Gone => Said::Gone,
    }
}

fn stamp() -> Stamp {
    Stamp { owner: "a".into(), counter: 1, changelog: Some("id".into()) }
}

fn fence() -> Work {
    Work::Fence { unwanted: Cancel::default() }
}

/// A batch of one change.
fn batch() -> Arc<ClosedBatch> {
    let mut overlay = Overlay::default();
    overlay.change(b"\0a"[..].into(), None, StateChange::Set(b"\x01x"[..].into()));
    Arc::new(ClosedBatch { id: 4, layer: Arc::new(overlay.close()), ..ClosedBatch::default() })
}

const COMMITTED: Outcome = Outcome::Committed { suspect: false };
const APPLIED: Option<Event> = Some(Event::Applied { id: 4 });

fn passing() -> BrokerError {
    error(ErrorKind::Retriable)
}

/// The only failure that was reported.
#[track_caller]
fn failure(said: &[Said]) -> &str {
    match said {
        [Said::Failed(text)] => text,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn next(reports: &mut UnboundedReceiver<Report>) -> Said {
    let until = Instant::now() + LONG;
    loop {
        match reports.try_recv() {
            Ok(report) => return said(report),
            Err(error) => assert!(Instant::now() < until, "no report: {error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_thread_does_what_it_is_asked_and_serves_its_producer_in_between() {
    let cluster = Cluster::default();
    let (sender, mut reports) = unbounded_channel();
    let context = Arc::new(context(&STAGE, &cluster, limits()));
    let mut worker = Worker::start(context, 0, sender).unwrap();
    worker.fence();
    assert!(matches!(next(&mut reports), Said::Event(Event::Fenced { .. })));
    let until = Instant::now() + LONG;
    while cluster.inside().served == 0 {
        assert!(Instant::now() < until, "the producer is not served");
        std::thread::sleep(Duration::from_millis(1));
    }
    // A failure stops the process, and nobody awaits the commit any more.
    cluster.fail("produce", [error(ErrorKind::Hopeless)]);
    worker.ask(Work::Send { batch: batch(), stamp: stamp(), positions: vec![7], paced: false });
    assert!(matches!(next(&mut reports), Said::Failed(_)));
    let dead = Outcome::Dead { fenced: false, error: "the process stops".into() };
    assert_eq!(next(&mut reports), Said::Event(Event::Sent { id: 4, outcome: dead }));
    // Another failure is only that.
    cluster.fail("committed", [error(ErrorKind::Hopeless)]);
    worker.ask(Work::ReadOffsets);
    assert!(matches!(next(&mut reports), Said::Failed(_)));
    worker.ask(Work::Quit { flush: true });
    assert_eq!(next(&mut reports), Said::Gone);
    assert_eq!(cluster.inside().producers, 0);
}

#[test]
fn positions_and_ranges_are_those_of_the_cluster() {
    let mut bench = Bench::new(&TWO_INPUTS, limits());
    let committed = |topic: &str, offset| Committed {
        at: TopicPartition { topic: topic.into(), partition: 0 },
        offset,
        metadata: topic.to_uppercase(),
    };
    bench.cluster.inside().committed = vec![committed("words", Some(5)), committed("counts", None)];
    bench.cluster.fail("committed", [passing()]);
    let input = |offset, metadata: &str| CommittedInput { offset, metadata: metadata.into() };
    let expected = Event::Offsets(vec![input(Some(5), "WORDS"), input(None, "COUNTS")]);
    assert_eq!(bench.ask(Work::ReadOffsets), [Said::Event(expected)]);
    assert_eq!(bench.cluster.calls(), ["committed words/0 counts/0"; 2]);

    let marks = |low| Watermarks { low, stable: low + 1, high: low + 2 };
    bench.cluster.inside().watermarks = [marks(3), marks(13)].into();
    let range = |low| InputRange { low, stable: low + 1, high: low + 2 };
    let expected = Event::Ranges(vec![range(3), range(13)]);
    assert_eq!(bench.ask(Work::ReadRanges), [Said::Event(expected)]);
    assert_eq!(bench.cluster.calls(), ["watermarks words/0", "watermarks counts/0"]);
    // Leases have no records.
    let lease = InputRange { low: 0, stable: 0, high: 0 };
    let mut bench = Bench::new(&EXTRACTS, limits());
    assert_eq!(bench.ask(Work::ReadRanges), [Said::Event(Event::Ranges(vec![lease]))]);
    assert!(bench.cluster.calls().is_empty());
}

/// S4 step 3, S7.3c
#[test]
fn the_end_of_a_changelog_counts_once_nothing_is_open_before_it() {
    let mut bench = Bench::ready(&STAGE, limits());
    let marks = |stable, high| Watermarks { low: 0, stable, high };
    bench.cluster.inside().topic_id = "id".into();
    const BLOCKED: usize = 5;
    bench.cluster.inside().watermarks = [marks(3, 9); BLOCKED].into();
    bench.cluster.inside().watermarks.push_back(marks(9, 9));
    let (said, seen) = seen(|| bench.ask(Work::ReadChangelogEnd));
    assert_eq!(said, [Said::Event(Event::ChangelogEnd(9))]);
    let blocked = seen.of("flechtwerk_changelog_blocked");
    assert_eq!((blocked[0], blocked[blocked.len() - 1]), (1.0, 0.0));
    assert!((1..BLOCKED).contains(&seen.warnings), "once, and then not for each look: {}", seen.warnings);
    assert_eq!(bench.cluster.inside().served, BLOCKED);
    let mut calls = bench.cluster.calls();
    assert_eq!(calls.pop().as_deref(), Some("topic_id demo-sessions-changelog"));
    assert_eq!(calls, ["watermarks demo-sessions-changelog/0"; BLOCKED + 1]);
    // Another topic of this name.
    bench.cluster.inside().topic_id = "another".into();
    let said = bench.ask(Work::ReadChangelogEnd);
    assert!(failure(&said).contains("it was deleted and made anew"), "{said:?}");
    // A task that is over does not wait for an end.
    bench.cluster.inside().watermarks = [marks(3, 9)].into();
    bench.thread.cancel.cancel();
    assert_eq!(bench.ask(Work::ReadChangelogEnd), []);
}

#[test]
fn a_store_is_opened_once_and_anew_where_it_is_to_be_wiped() {
    let mut bench = Bench::new(&STAGE, limits());
    let (said, seen) = seen(|| bench.ask(Work::OpenStore { wiped: false }));
    let opened = |stamp: Option<&str>| Said::Event(Event::StoreOpened { stamp: stamp.map(str::to_owned) });
    assert_eq!(said, [Said::Store, opened(None)]);
    assert_eq!(seen.of("flechtwerk_timers_pending"), [5.0]);
    assert_eq!(seen.of("flechtwerk_store_entries"), [0.0]);
    let apply = |bench: &mut Bench| bench.ask(Work::Apply { batch: batch(), stamp: stamp() });
    let (said, seen) = crate::runtime::testing::seen(|| apply(&mut bench));
    assert_eq!(said, [Said::Event(Event::Applied { id: 4 })]);
    assert_eq!(seen.of("flechtwerk_store_entries"), [1.0]);
    assert_eq!(seen.of("flechtwerk_store_bytes"), [4.0]);
    let old = bench.thread.store.clone().unwrap();
    assert_eq!(bench.ask(Work::OpenStore { wiped: false }), [Said::Store, opened(Some("a:1:id"))]);
    assert!(Arc::ptr_eq(&old, bench.thread.store.as_ref().unwrap()));
    assert_eq!(bench.ask(Work::OpenStore { wiped: true }), [Said::Store, opened(None)]);
    // No matter when it fails: what another process holds stops this one, all else is for the state machine.
    let failed = Event::StoreFailed { error: "can't use the store: as the test says".into() };
    bench.shelf.fail(false);
    assert_eq!(bench.ask(Work::OpenStore { wiped: false }), [Said::Event(failed.clone())]);
    bench.shelf.fail(false);
    assert_eq!(apply(&mut bench), [Said::Event(failed.clone())]);
    bench.shelf.fail(true);
    assert!(failure(&bench.ask(Work::OpenStore { wiped: true })).contains("stop that one"));
    bench.shelf.fail(false);
    assert_eq!(bench.ask(Work::OpenStore { wiped: false }), [Said::Event(failed)]);
}

#[test]
fn a_restore_says_what_came_of_it() {
    let mut bench = Bench::ready(&STAGE, limits());
    bench.cluster.inside().watermarks = [Watermarks { low: 0, stable: 1, high: 1 }].into();
    let restore = || Work::Restore { end: 1, stamp: Some("b:2:id".into()) };
    bench.cluster.inside().takes = [(vec![], None), (vec![record(0, b"\0a", Some(b"\x01x"))], None)].into();
    let (said, seen) = seen(|| bench.ask(restore()));
    assert_eq!(said, [Said::Event(Event::Restored { empty: false })]);
    assert_eq!(bench.stamp().as_deref(), Some("b:2:id"));
    assert_eq!(seen.of("flechtwerk_store_entries"), [1.0]);
    assert_eq!(bench.cluster.inside().served, 1, "the producer is served while it waits");
    bench.cluster.inside().takes = [(vec![], Some(1))].into();
    assert_eq!(bench.ask(restore()), [Said::Event(Event::Restored { empty: true })]);
    bench.shelf.fail(false);
    assert!(matches!(&bench.ask(restore())[..], [Said::Event(Event::StoreFailed { .. })]));
    bench.cluster.fail("take", [error(ErrorKind::Fatal)]);
    assert!(matches!(&bench.ask(restore())[..], [Said::Failed(_)]));
    bench.thread.cancel.cancel();
    assert_eq!(bench.ask(restore()), []);
}

/// S3.4
#[test]
fn the_store_is_written_once_the_commit_is_known_and_only_then() {
    let mut bench = Bench::ready(&STAGE, limits());
    let batch = batch();
    bench.cluster.fail("send_offsets", [error(ErrorKind::Generation)]);
    let aborted = Outcome::Aborted { why: Abort::Generation, suspect: false };
    let (said, shown) = seen(|| bench.send(&batch, false));
    assert_eq!(said, [Said::Sent(4, aborted, None)]);
    assert_eq!((bench.stamp(), shown.of("flechtwerk_aborts_total")), (None, &[1.0][..]));
    bench.cluster.fail("commit", [error(ErrorKind::Fatal)]);
    assert!(matches!(&bench.send(&batch, false)[..], [Said::Sent(4, Outcome::Dead { .. }, None)]));
    assert_eq!(bench.stamp(), None);
    let (said, shown) = seen(|| bench.send(&batch, true));
    assert_eq!(said, [Said::Sent(4, COMMITTED, APPLIED)]);
    assert_eq!(bench.stamp().as_deref(), Some("a:1:id"));
    assert_eq!((shown.warnings, shown.of("flechtwerk_commits_total")), (0, &[1.0][..]));
    // A store that fails then says so; the commit counts all the same.
    bench.shelf.fail(false);
    let said = bench.send(&batch, false);
    assert!(matches!(&said[..], [Said::Sent(4, COMMITTED, Some(Event::StoreFailed { .. }))]), "{said:?}");
    // Of a task that is over nothing is written: its partition may have another one.
    let mut bench = Bench::ready(&STAGE, limits());
    bench.thread.cancel.cancel();
    assert_eq!(bench.send(&batch, false), [Said::Sent(4, COMMITTED, None)]);
    assert_eq!(bench.stamp(), None);
    bench.ask(Work::DropProducer);
    let gone = Outcome::Dead { fenced: false, error: "the producer is gone".into() };
    assert_eq!(bench.send(&batch, false), [Said::Event(Event::Sent { id: 4, outcome: gone })]);
}

#[test]
fn what_can_never_be_sent_stops_the_process() {
    // The broker ends what takes too long, and here everything does.
    let mut bench = Bench::ready(&STAGE, Limits { transaction_timeout: Duration::ZERO, ..limits() });
    bench.cluster.fail("commit", [ErrorKind::Fenced; 2].map(error));
    assert!(matches!(
        &bench.send(&batch(), false)[..],
        [Said::Sent(4, Outcome::Dead { fenced: true, .. }, None)]
    ));
    let said = bench.send(&batch(), false);
    assert!(failure(&said).contains("transaction_timeout"), "{said:?}");
    let mut bench = Bench::ready(&STAGE, Limits { broker_timeout: Duration::ZERO, ..limits() });
    bench.cluster.fail("commit", [ErrorKind::TimedOut; 2].map(error));
    assert!(matches!(&bench.send(&batch(), false)[..], [Said::Sent(4, Outcome::Dead { .. }, None)]));
    let said = bench.send(&batch(), false);
    assert!(failure(&said).contains("--broker-timeout"), "{said:?}");
}

#[test]
fn a_store_is_flushed_at_a_clean_end() {
    let mut bench = Bench::ready(&STAGE, limits());
    for (flush, flushes) in [(false, 0), (true, 1)] {
        assert_eq!(bench.ask(Work::Quit { flush }), []);
        assert_eq!(bench.shelf.flushes.load(Ordering::SeqCst), flushes);
    }
    // It is only a cache: the next start restores it.
    bench.shelf.fail(false);
    let (said, seen) = seen(|| bench.ask(Work::Quit { flush: true }));
    assert_eq!((said, seen.warnings), (Vec::new(), 1));
}
