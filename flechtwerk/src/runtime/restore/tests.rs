//! A restore from a changelog that a test writes, and the records that it must refuse.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use bytes::Bytes;

use super::*;
use crate::demo::{Described, SESSIONS};
use crate::port::{BrokerError, ErrorKind, StoreFactory, StoreId, Watermarks};
use crate::runtime::context::Limits;
use crate::runtime::testing::{Cluster, LONG, Seen, context, error, limits, record, seen};
use crate::store::MemoryStores;

static STAGE: Described = Described(&SESSIONS);
/// A state of version 1.
const STATE: Option<&[u8]> = Some(b"\x01x");

fn at() -> TopicPartition {
    TopicPartition { topic: "demo-sessions-changelog".into(), partition: 0 }
}

struct Restored {
    store: Arc<dyn Store>,
    empty: Result<bool, Unrestored>,
    seen: Seen,
    /// Turns in which nothing was there.
    idle: usize,
}

impl Restored {
    fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        let visit = &mut |key: &[u8], _: &[u8]| keys.push(String::from_utf8_lossy(&key[1..]).into_owned());
        self.store.for_each(visit).unwrap();
        keys
    }

    fn failure(self) -> String {
        match self.empty {
            Err(Unrestored::Failed(failure)) => failure.message,
            _ => panic!("it did not fail"),
        }
    }
}

/// Restores a changelog that begins at `low`, up to `end`, over a store that has something else.
fn restored(cluster: &Cluster, low: i64, end: i64, cancel: &Cancel) -> Restored {
    restored_within(LONG, cluster, low, end, cancel)
}

fn restored_within(
    broker_timeout: Duration,
    cluster: &Cluster,
    low: i64,
    end: i64,
    cancel: &Cancel,
) -> Restored {
    cluster.inside().watermarks = [Watermarks { low, stable: end, high: end }].into();
    let context = context(&STAGE, cluster, Limits { broker_timeout, ..limits() });
    let id = StoreId { application_id: "demo".into(), partition: 0 };
    let store = MemoryStores::default().open(&id, false).unwrap();
    let old = ChangelogRecord { key: b"\0old"[..].into(), value: Some(b"\x01x"[..].into()) };
    store.apply(&[old], "old stamp").unwrap();
    let mut idle = 0;
    let (empty, seen) = seen(|| restore(&context, &*store, &at(), end, Some("stamp"), cancel, || idle += 1));
    Restored { store, empty, seen, idle }
}

fn gives(cluster: &Cluster, takes: Vec<(Vec<RawRecord>, Option<i64>)>) {
    cluster.inside().takes = takes.into();
}

/// S4 step 4
#[test]
fn the_store_holds_what_the_changelog_has_below_the_end() {
    let cluster = Cluster::default();
    gives(
        &cluster,
        vec![
            (vec![record(3, b"\0a", STATE), record(4, b"\0b", STATE)], None),
            // An end of the partition that is below the end of the restore says nothing.
            (vec![record(6, b"\0c", STATE)], Some(7)),
            (vec![], None),
            // What lies at the end and behind it is none of ours.
            (vec![record(7, b"\0a", None), record(8, b"\0d", STATE), record(9, b"\0e", STATE)], None),
        ],
    );
    let done = restored(&cluster, 3, 9, &Cancel::default());
    assert!(matches!(done.empty, Ok(false)));
    assert_eq!(done.keys(), ["b", "c", "d"]);
    assert_eq!(done.store.stamp().unwrap().as_deref(), Some("stamp"));
    assert_eq!(done.idle, 1);
    assert_eq!(cluster.calls()[1], "open demo-sessions-changelog/0 3");
    // Offsets that are left: all at first, and at last none.
    assert_eq!(done.seen.of("flechtwerk_restore_remaining_offsets"), [6.0, 4.0, 2.0, 2.0, 0.0, 0.0]);
}

#[test]
fn markers_at_the_end_are_no_records_to_wait_for() {
    let cluster = Cluster::default();
    gives(&cluster, vec![(vec![record(0, b"\0a", STATE)], None), (vec![], Some(5))]);
    let done = restored(&cluster, 0, 5, &Cancel::default());
    assert_eq!(done.keys(), ["a"]);
    assert_eq!(done.seen.of("flechtwerk_restore_remaining_offsets"), [5.0, 4.0, 0.0, 0.0]);
    // Nothing but markers, the last of them behind the end.
    gives(&cluster, vec![(vec![], Some(9))]);
    let done = restored(&cluster, 0, 5, &Cancel::default());
    assert!(matches!(done.empty, Ok(true)));
    assert_eq!(done.store.stamp().unwrap().as_deref(), Some("stamp"));
}

#[test]
fn an_empty_changelog_is_not_read() {
    let cluster = Cluster::default();
    let done = restored(&cluster, 7, 7, &Cancel::default());
    assert!(matches!(done.empty, Ok(true)));
    assert_eq!(done.store.stamp().unwrap().as_deref(), Some("stamp"));
    assert_eq!(cluster.calls(), ["watermarks demo-sessions-changelog/0"]);
    assert!(done.seen.of("flechtwerk_restore_remaining_offsets").is_empty());
}

#[test]
fn a_restore_that_ends_early_leaves_no_stamp() {
    let cluster = Cluster::default();
    let cancel = Cancel::default();
    cancel.cancel();
    let done = restored(&cluster, 0, 5, &cancel);
    assert!(matches!(done.empty, Err(Unrestored::Cancelled)));
    assert_eq!(done.store.stamp().unwrap(), None);
    gives(
        &cluster,
        vec![(vec![record(0, b"\0a", STATE)], None), (vec![record(1, b"\0b", Some(b"\x09"))], None)],
    );
    let done = restored(&cluster, 0, 5, &Cancel::default());
    assert_eq!(done.store.stamp().unwrap(), None);
    assert_eq!(done.keys(), ["a"]);
    assert!(done.failure().contains("demo-sessions-changelog/0 offset 1 holds state of version 9"));
    cluster.fail("take", [error(ErrorKind::Fatal)]);
    let text = restored(&cluster, 0, 5, &Cancel::default()).failure();
    assert!(text.contains("can't read changelog demo-sessions-changelog/0"), "{text}");
}

/// S6.2a: a changelog that is gone gives nothing any more, and no error either.
#[test]
fn a_changelog_that_is_gone_or_made_anew_during_the_restore_stops_it() {
    let cluster = Cluster::default();
    let unknown = || BrokerError { code: "UNKNOWN_TOPIC_OR_PART".into(), ..error(ErrorKind::Hopeless) };
    let nothing = || vec![(vec![], None)];
    let failure = || restored_within(Duration::ZERO, &cluster, 0, 5, &Cancel::default()).failure();
    cluster.inside().topic_id = "id".into();
    gives(&cluster, nothing());
    cluster.fail("topic_id", [unknown()]);
    let text = failure();
    assert!(
        text.contains(
            "stage sessions: topic demo-sessions-changelog has not been there for --broker-timeout"
        ),
        "{text}"
    );
    assert!(text.contains("somebody has deleted it"), "{text}");

    cluster.inside().topic_id = "other".into();
    gives(&cluster, nothing());
    let text = failure();
    assert!(
        text.contains("was deleted and made anew while it was read, and the state in the old one is lost"),
        "{text}"
    );

    // Whether it is there is not known, or it is: it is waited for.
    cluster.inside().topic_id = "id".into();
    cluster.fail("topic_id", [error(ErrorKind::TimedOut)]);
    gives(&cluster, vec![(vec![], None), (vec![], None), (vec![record(0, b"\0a", STATE)], Some(5))]);
    let done = restored_within(Duration::ZERO, &cluster, 0, 5, &Cancel::default());
    assert!(matches!(done.empty, Ok(false)));
    assert_eq!(done.keys(), ["a"]);
}

/// Between two looks at an empty queue the thread rests.
#[test]
fn a_restore_rests_until_something_is_there() {
    let cluster = Cluster::default();
    let (idle, told) = channel();
    let writer = std::thread::spawn({
        let cluster = cluster.clone();
        move || {
            told.recv_timeout(LONG).expect("the restore looks at its queue");
            // Whoever does not rest has looked too often by then.
            std::thread::sleep(Duration::from_millis(20));
            let mut inside = cluster.inside();
            inside.takes.push_back((vec![record(0, b"\0a", STATE)], None));
            let wake = inside.wake.clone().unwrap();
            drop(inside);
            wake();
        }
    });
    cluster.inside().watermarks = [Watermarks { low: 0, stable: 1, high: 1 }].into();
    let context = context(&STAGE, &cluster, limits());
    let id = StoreId { application_id: "demo".into(), partition: 0 };
    let store = MemoryStores::default().open(&id, false).unwrap();
    let said = restore(&context, &*store, &at(), 1, None, &Cancel::default(), || {
        let _ = idle.send(());
    });
    assert!(matches!(said, Ok(false)));
    writer.join().unwrap();
}

#[test]
fn a_parked_thread_goes_on_when_it_is_woken() {
    let parker = Parker::new();
    // A wake that comes first is not lost.
    parker.wake()();
    parker.wait(LONG);
    let woken = Arc::new(AtomicBool::new(false));
    let (about, told) = channel();
    let wake = parker.wake();
    let waker = std::thread::spawn({
        let woken = woken.clone();
        move || {
            told.recv_timeout(LONG).unwrap();
            // Whoever does not wait is through by then.
            std::thread::sleep(Duration::from_millis(20));
            woken.store(true, Ordering::SeqCst);
            wake();
        }
    });
    about.send(()).unwrap();
    parker.wait(LONG);
    assert!(woken.load(Ordering::SeqCst), "it went on by itself");
    waker.join().unwrap();
}

/// What this program can't read stops the start, with the place and a way out.
#[test]
fn a_changelog_record_is_read_before_it_is_taken() {
    let check = |record: RawRecord| {
        let key = record.key.clone();
        let changed = change(&SESSIONS, &at(), record).map_err(|failure| failure.message)?;
        assert_eq!(Some(Bytes::from(changed.key)), key);
        Ok::<_, String>(changed.value.map(Bytes::from))
    };
    let refused = |key, value: &'static [u8]| check(record(7, key, Some(value))).unwrap_err();
    let mut timers = Vec::new();
    let timer = timers::Pending { name: "t".into(), clock: timers::Clock::EventTime, due: 1 };
    timers::encode(&[timer], &mut timers);
    let timers = Bytes::from(timers);
    for (key, value) in [
        (&b"\0a"[..], Bytes::from_static(b"\x01x")),
        (b"\x01a", timers),
        (timers::STREAM_TIME, timers::encode_stream_time(3).into()),
        // Notes of a later release are none of ours.
        (b"\x02other", Bytes::from_static(b"\xff")),
    ] {
        let record = RawRecord { value: Some(value.clone()), ..record(7, key, None) };
        assert_eq!(check(record), Ok(Some(value)));
        assert_eq!(check(crate::runtime::testing::record(7, key, None)), Ok(None), "a delete");
    }
    let keyless = check(RawRecord { key: None, ..record(7, b"", None) }).unwrap_err();
    assert!(keyless.contains("demo-sessions-changelog/0 offset 7 has a record without a key"), "{keyless}");
    for (key, value, expected) in [
        (&b"\x09a"[..], &b"x"[..], "can't be read: unknown kind 9"),
        (b"\0a", b"", "can't be read: the value ends within its version"),
        (b"\0a", b"\x02x", "holds state of version 2, but this program knows version 1 of Count"),
        (b"\0a", b"\0x", "holds state of version 0"),
        (b"\x01a", b"\x02", "holds timers of version 2, but this program knows version 1"),
        (b"\x01a", b"\x01", "holds timers that can't be read"),
        (timers::STREAM_TIME, b"\x02", "holds a stream time of version 2"),
        (timers::STREAM_TIME, b"\x01", "holds a stream time that can't be read"),
    ] {
        let text = refused(key, value);
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
