//! The whole example: its program as a process that is killed, and a broker.

use std::collections::BTreeMap;
use std::time::Duration;

use flechtwerk_dev_broker::DevBroker;
use flechtwerk_tests::{Kafka, Observer, Rig, STOP, Seen, wait_within};
use sessions::{Click, GAP, Session};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sessions");
/// Time to make up a day and to put it together.
const LIMIT: Duration = Duration::from_secs(120);

/// Sessions by partition and visitor, in the order of their begin.
type All = BTreeMap<(i32, String), Vec<Session>>;

/// What a plain recount makes of the clicks: per visitor in the order of time, split where half an hour is missing. Those
/// that may still go on when the partition has come to its last click are left out.
fn recount(clicks: &[Seen]) -> All {
    let mut by_visitor: BTreeMap<(i32, String), Vec<(i64, Click)>> = BTreeMap::new();
    let mut stream_times: BTreeMap<i32, i64> = BTreeMap::new();
    for seen in clicks {
        let click = serde_json::from_slice(seen.value.as_deref().unwrap_or_default()).expect("a click");
        by_visitor.entry((seen.partition, seen.key_text())).or_default().push((seen.timestamp, click));
        let time = stream_times.entry(seen.partition).or_default();
        *time = (*time).max(seen.timestamp);
    }
    let mut all = All::new();
    for (visitor, mut clicks) in by_visitor {
        clicks.sort_by_key(|(at, _)| *at);
        let mut sessions: Vec<Session> = vec![];
        for (at, click) in clicks {
            match sessions.last_mut() {
                Some(open) if at < open.end + GAP => open.add(at, click),
                _ => sessions.push(Session::new(at, &click)),
            }
        }
        sessions.retain(|session| session.end + GAP <= stream_times[&visitor.0]);
        all.insert(visitor, sessions);
    }
    all.retain(|_, sessions| !sessions.is_empty());
    all
}

fn arrived(sessions: &[Seen]) -> All {
    let mut all = All::new();
    for seen in sessions {
        let session: Session =
            serde_json::from_slice(seen.value.as_deref().unwrap_or_default()).expect("a session");
        assert_eq!(seen.timestamp, session.end + GAP, "the time at which it was over");
        all.entry((seen.partition, seen.key_text())).or_default().push(session);
    }
    all.values_mut().for_each(|sessions| sessions.sort_by_key(|session| session.begin));
    all
}

#[test]
fn every_session_is_closed_once_across_kills() {
    let broker = DevBroker::builder().topic(("clicks", 3)).topic(("sessions", 3)).start().expect("a broker");
    let kafka = Kafka { brokers: broker.bootstrap() };
    let rig = Rig::new(&kafka, PROGRAM);
    let (clicks, sessions) = (Observer::start(&kafka, "clicks"), Observer::start(&kafka, "sessions"));
    for count in [100, 500] {
        let mut instance = rig.start();
        wait_within(LIMIT, "some sessions", || sessions.count() >= count);
        instance.kill();
    }
    let mut instance = rig.start();
    wait_within(LIMIT, "the sessions of a day", || sessions.count() >= 1_000);
    assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());

    // What was read from the clicks decides which sessions are over; those that were not read yet follow.
    let mut instance = rig.clone().arg("--stage", "collect").start();
    let mut both = (All::new(), All::new());
    wait_within(LIMIT, "the sessions of a recount", || {
        both = (recount(&clicks.seen()), arrived(&sessions.seen()));
        both.0 == both.1
    });
    assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
    assert!(both.0.values().map(Vec::len).sum::<usize>() >= 1_000);
}

#[test]
fn the_readme_shows_the_pipeline() {
    flechtwerk_tests::readme::assert_diagram(env!("CARGO_MANIFEST_DIR"), PROGRAM);
}
