//! A round, with a store and changes that are newer than it.

use std::sync::Mutex;

use super::*;
use crate::BoxError;
use crate::demo::SESSIONS;
use crate::format::ChangelogRecord;
use crate::glue::{AnyStage, BoxFuture, FailureKind, Round, StageInfo, StateChange};
use crate::port::{StoreFactory, StoreId};
use crate::runtime::testing::{Cluster, context, limits, record};
use crate::store::MemoryStores;

/// Sessions whose state keys are the records' values.
static KEYED: StageInfo = StageInfo { custom_key: true, ..SESSIONS };

/// What a function is given of a bucket: its key, the number of its records, state and timers.
type Given = (String, usize, Option<String>, Option<String>);

/// A stage that notes what it is given.
struct Notes {
    info: &'static StageInfo,
    given: Mutex<Vec<Given>>,
    times: Mutex<Times>,
    end: fn() -> Result<RoundEnd, crate::glue::Failure>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl AnyStage for Notes {
    fn info(&self) -> &'static StageInfo {
        self.info
    }

    fn key(&self, record: &RawRecord) -> Result<Bytes, (FailureKind, BoxError)> {
        record.value.clone().ok_or((FailureKind::User, "there is no key".into()))
    }

    fn round<'a>(
        &'a self,
        round: &'a mut Round,
        _: &'a mut Outputs,
        _: &'a Env,
        _: usize,
    ) -> BoxFuture<'a, Result<RoundEnd, crate::glue::Failure>> {
        let given = |bucket: &crate::glue::Bucket| {
            let [state, timers] = [&bucket.state, &bucket.timers].map(|bytes| bytes.as_deref().map(text));
            (text(bucket.key()), bucket.records.len(), state, timers)
        };
        *self.given.lock().unwrap() = round.buckets.iter().map(given).collect();
        *self.times.lock().unwrap() = round.times;
        Box::pin(async { (self.end)() })
    }
}

fn notes(info: &'static StageInfo, end: fn() -> Result<RoundEnd, crate::glue::Failure>) -> &'static Notes {
    // What a program's stages are, they are for ever.
    Box::leak(Box::new(Notes { info, given: Mutex::default(), times: Mutex::default(), end }))
}

fn entry(key: &'static [u8], value: &'static [u8]) -> ChangelogRecord {
    ChangelogRecord { key: key.into(), value: Some(value.into()) }
}

fn stored() -> Arc<dyn Store> {
    let id = StoreId { application_id: "demo".into(), partition: 0 };
    let store = MemoryStores::default().open(&id, false).unwrap();
    let entries = [
        entry(b"\0a", b"old a"),
        entry(b"\0b", b"old b"),
        entry(b"\0c", b"old c"),
        entry(b"\x01a", b"timers a"),
    ];
    store.apply(&entries, "stamp").unwrap();
    store
}

/// Runs a round of these records and due keys.
fn run(
    stage: &'static Notes,
    taken: Taken,
    overlay: &Overlay,
    store: Option<&dyn Store>,
) -> Result<Finished, String> {
    let context = Arc::new(context(stage, &Cluster::default(), limits()));
    let times = Times { now: 5, due: DueBy { event_time: Some(1), wall_clock: None }, ..Times::default() };
    let (env, outputs) = (Env::default(), Outputs::default());
    let batch = OfBatch { env, outputs, budget: 1 << 20, times, spent: Duration::ZERO };
    let started = start(&context, 0, taken, overlay, store, batch).map_err(|not| match not {
        NotStarted::Store(error) => error,
        NotStarted::Failed(failure) => failure.message,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    Ok(runtime.block_on(next(&mut Some(started?))))
}

fn of(records: Vec<RawRecord>) -> Taken {
    Taken { records, keys: Vec::new(), due: None }
}

fn given(key: &str, records: usize, state: Option<&str>, timers: Option<&str>) -> Given {
    (key.to_owned(), records, state.map(str::to_owned), timers.map(str::to_owned))
}

/// S2.5: what is newer than the store hides what it has.
#[test]
fn a_round_is_given_the_last_state_and_timers_of_each_key() {
    let stage = notes(&SESSIONS, || Ok(RoundEnd::Done));
    let mut overlay = Overlay::default();
    overlay.change(b"\0b"[..].into(), None, StateChange::Set(b"new b"[..].into()));
    overlay.change(b"\0c"[..].into(), None, StateChange::Deleted);
    let store = stored();
    let records = [&b"a"[..], b"b", b"c", b"d", b"a"];
    let records = (0..).zip(records).map(|(offset, key)| record(offset, key, None)).collect();
    let taken = Taken { keys: vec![Bytes::from_static(b"e")], ..of(records) };
    assert!(matches!(run(stage, taken, &overlay, Some(&*store)), Ok(Finished::Done { .. })));
    let expected = [
        given("a", 2, Some("old a"), Some("timers a")),
        given("b", 1, Some("new b"), None),
        given("c", 1, None, None),
        given("d", 1, None, None),
        given("e", 0, None, None),
    ];
    assert_eq!(*stage.given.lock().unwrap(), expected);
    // Before a store is open there is only what is newer.
    assert!(run(stage, of(vec![record(0, b"a", None), record(1, b"b", None)]), &overlay, None).is_ok());
    let expected = [given("a", 1, None, None), given("b", 1, Some("new b"), None)];
    assert_eq!(*stage.given.lock().unwrap(), expected);
    assert_eq!(&before(Some(b"given"[..].into()), Some(&*store), b"\0a").unwrap()[..], b"given");
}

#[test]
fn a_stage_may_compute_its_keys() {
    let stage = notes(&KEYED, || Ok(RoundEnd::Done));
    let records = vec![record(0, b"x", Some(b"a")), record(1, b"y", Some(b"b")), record(2, b"z", Some(b"a"))];
    assert!(run(stage, of(records), &Overlay::default(), Some(&*stored())).is_ok());
    let expected = [given("a", 2, Some("old a"), Some("timers a")), given("b", 1, Some("old b"), None)];
    assert_eq!(*stage.given.lock().unwrap(), expected);
    let keyless = of(vec![record(0, b"x", Some(b"a")), record(1, b"y", None)]);
    let text = run(stage, keyless, &Overlay::default(), None).err().unwrap();
    assert!(text.contains("the record at words/0 offset 1: there is no key"), "{text}");
}

#[test]
fn timers_go_by_what_the_round_says_before_what_its_records_say() {
    let stage = notes(&SESSIONS, || Ok(RoundEnd::Done));
    let due = |taken| {
        assert!(run(stage, taken, &Overlay::default(), None).is_ok());
        let times = *stage.times.lock().unwrap();
        assert_eq!(times.now, 5);
        times.due
    };
    let by = DueBy { event_time: None, wall_clock: Some(9) };
    assert_eq!(due(of(vec![record(0, b"a", None)])), DueBy { event_time: Some(1), wall_clock: None });
    assert_eq!(due(Taken { keys: vec![Bytes::from_static(b"a")], due: Some(by), ..of(Vec::new()) }), by);
}

#[test]
fn a_round_ends_as_its_stage_says() {
    let over = notes(&SESSIONS, || Ok(RoundEnd::OverBudget));
    let finished = run(over, of(vec![record(0, b"a", None)]), &Overlay::default(), None);
    assert!(matches!(finished, Ok(Finished::OverBudget { .. })));
    let failing = notes(&SESSIONS, || {
        let error = "as the test says".into();
        Err(crate::glue::Failure { record: 1, timer: None, kind: FailureKind::User, error })
    });
    let message = |records| match run(failing, records, &Overlay::default(), None) {
        Ok(Finished::Failed(failure)) => failure.message,
        _ => panic!("it did not fail"),
    };
    let text = message(of(vec![record(7, b"a", None), record(8, b"a", None)]));
    assert!(text.contains("failed at the record at words/0 offset 8"), "{text}");
    let text = message(Taken { keys: vec![Bytes::from_static(b"a")], ..of(Vec::new()) });
    assert!(text.contains("the timers of partition 0 that are due"), "{text}");
}
