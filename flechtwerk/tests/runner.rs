//! What the generated code makes of a round: the contract of `AnyStage`.
#![allow(missing_docs)]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use flechtwerk::BoxError;
use flechtwerk::glue::{
    AnyStage, Bucket, Env, Failure, FailureKind, Mark, Outputs, RawRecord, RecordPart, Round, RoundEnd,
    StateChange,
};
use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("in", key = Utf8, value = Json<i64>)]
struct In;
#[topic("other", key = Utf8, value = Json<i64>)]
struct Other;
#[topic("odd", key = Utf8, value = Json<f64>)]
struct Odd;
#[topic("out", key = Utf8, value = Json<i64>)]
struct Sums;
#[topic("bytes", key = Bytes, value = Bytes)]
struct Raw;

#[derive(State, Serialize, Deserialize, Default)]
#[state(version = 2)]
struct Sum {
    total: i64,
}

/// Sums up; does something special at the numbers 1000 and above.
#[transformer(inputs = [In], state = Sum)]
async fn sum(
    record: Record<In>,
    state: &mut State<Sum>,
    odd: &mut Out<Odd>,
    out: &mut Out<Sums>,
) -> flechtwerk::Result {
    match record.value {
        1000 => return Err("a thousand is too much".into()),
        1001 => panic!("at {}", record.value),
        1002 => odd.send(record.key.clone(), f64::NAN),
        1003 => {
            state.clear();
            return Ok(());
        }
        1004 => tick(3).await,
        1005 => {
            state.set(Sum { total: i64::MAX });
            return Ok(());
        }
        1006 => panic!("plain"),
        _ => {}
    }
    let sum = state.get_or_insert_default();
    sum.total += record.value;
    out.send(record.key, sum.total);
    Ok(())
}

#[transformer(inputs = [Raw])]
async fn pass(record: Record<Raw>, out: &mut Out<Raw>) -> flechtwerk::Result {
    out.send(record.key, record.value);
    Ok(())
}

#[derive(Input)]
enum Both {
    In(Record<In>),
    Other(Record<Other>),
}

#[transformer(inputs = [In, Other], key = digits)]
async fn both(record: Both, out: &mut Out<Sums>) -> flechtwerk::Result {
    match record {
        Both::In(record) => out.send(record.key, record.value),
        Both::Other(record) => out.send(record.key, -record.value),
    }
    Ok(())
}

fn digits(input: &Both) -> String {
    match input {
        Both::In(record) => record.value.to_string(),
        Both::Other(record) => {
            assert!(record.value < 1000, "too large");
            format!("-{}", record.value)
        }
    }
}

/// How many functions are between their first line and their last.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[transformer(inputs = [In])]
async fn slow(record: Record<In>, out: &mut Out<Sums>) -> flechtwerk::Result {
    let inside = INSIDE.fetch_add(1, Ordering::SeqCst) + 1;
    MOST.fetch_max(inside, Ordering::SeqCst);
    tick(record.value).await;
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    out.send(record.key, record.value);
    Ok(())
}

flechtwerk::pipeline!(ALL = "all": [sum, pass, both, slow]);

/// Waits so many times.
async fn tick(times: i64) {
    let mut left = times;
    std::future::poll_fn(|cx| {
        left -= 1;
        if left < 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

fn stage(name: &str) -> &'static dyn AnyStage {
    *ALL.stages.iter().find(|stage| stage.info().name == name).unwrap()
}

fn raw(key: &str, value: &str, offset: i64) -> RawRecord {
    RawRecord {
        input: 0,
        partition: 4,
        offset,
        timestamp: 100 + offset,
        key: Some(Bytes::copy_from_slice(key.as_bytes())),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        headers: Headers::default(),
    }
}

/// A round of buckets: key, stored state, values.
fn round(buckets: &[(&str, Option<&str>, &[i64])]) -> Round {
    let mut round = Round::new(vec![], vec![]);
    for (key, state, values) in buckets {
        let start = round.records.len();
        for value in *values {
            let offset = round.records.len() as i64;
            round.records.push(raw(key, &value.to_string(), offset));
        }
        let state = state.map(|state| state.as_bytes().into());
        round
            .buckets
            .push(Bucket { state, ..Bucket::new(key.as_bytes().into(), start..round.records.len()) });
    }
    round
}

fn run(name: &str, round: &mut Round, outputs: &mut Outputs, budget: usize) -> Result<RoundEnd, Failure> {
    block_on(stage(name).round(round, outputs, &Env::default(), budget))
}

/// Runs a round that must succeed; topic, key and value of each output, and the changes.
fn done(name: &str, round: &mut Round) -> (Vec<(u16, String, String)>, Vec<StateChange>) {
    let mut outputs = Outputs::default();
    assert!(matches!(run(name, round, &mut outputs, usize::MAX).unwrap(), RoundEnd::Done));
    (list(&outputs), round.buckets.iter().map(|bucket| bucket.change.clone()).collect())
}

fn list(outputs: &Outputs) -> Vec<(u16, String, String)> {
    let text = |range: &Option<std::ops::Range<usize>>| {
        String::from_utf8(outputs.slice(range.as_ref().unwrap()).to_vec()).unwrap()
    };
    outputs.records.iter().map(|record| (record.topic, text(&record.key), text(&record.value))).collect()
}

fn failed(name: &str, round: &mut Round) -> Failure {
    let mut outputs = Outputs::default();
    let Ok(RoundEnd::Done) =
        run("pass", &mut self::round(&[("before", None, &[1])]), &mut outputs, usize::MAX)
    else {
        panic!("the round before failed");
    };
    let failure = run(name, round, &mut outputs, usize::MAX).err().expect("the round succeeded");
    // Nothing of the failed round is left.
    assert_eq!(list(&outputs), [(0, "before".into(), "1".into())]);
    assert!(round.buckets.iter().all(|bucket| bucket.change == StateChange::Unchanged));
    failure
}

fn set(state: &str) -> StateChange {
    StateChange::Set(state.as_bytes().into())
}

#[test]
fn a_bucket_hands_state_from_record_to_record() {
    let mut round =
        round(&[("a", None, &[1, 2]), ("b", Some("\u{2}{\"total\":10}"), &[5]), ("c", None, &[0])]);
    let (outputs, changes) = done("sum", &mut round);
    let outputs: Vec<_> = outputs.iter().map(|(topic, key, value)| (*topic, &**key, &**value)).collect();
    assert_eq!(outputs, [(1, "a", "1"), (1, "a", "3"), (1, "b", "15"), (1, "c", "0")]);
    assert_eq!(changes, [set("\u{2}{\"total\":3}"), set("\u{2}{\"total\":15}"), set("\u{2}{\"total\":0}")]);
}

#[test]
fn outputs_name_their_cause_and_take_its_time() {
    let mut outputs = Outputs::default();
    run("sum", &mut round(&[("a", None, &[1]), ("b", None, &[2])]), &mut outputs, usize::MAX).unwrap();
    let second = &outputs.records[1];
    assert_eq!((second.timestamp, second.partition), (101, None));
    assert_eq!((second.cause.input, second.cause.partition, second.cause.offset), (0, 4, 1));
}

#[test]
fn state_is_written_only_where_it_changed() {
    let stored = "\u{2}{\"total\":10}";
    let mut round = round(&[("a", Some(stored), &[0]), ("b", Some(stored), &[1003]), ("c", None, &[1003])]);
    let (_, changes) = done("sum", &mut round);
    assert_eq!(changes, [StateChange::Unchanged, StateChange::Deleted, StateChange::Unchanged]);
}

#[test]
fn a_round_appends() {
    let mut outputs = Outputs::default();
    run("pass", &mut round(&[("a", None, &[1])]), &mut outputs, usize::MAX).unwrap();
    run("pass", &mut round(&[("b", None, &[2])]), &mut outputs, usize::MAX).unwrap();
    assert_eq!(list(&outputs), [(0, "a".into(), "1".into()), (0, "b".into(), "2".into())]);
}

#[test]
fn failures_name_record_and_kind() {
    let stored = "\u{2}{\"total\":1}";
    let cases: [(&[i64], usize, &str, &str); 4] = [
        (&[1, 1000, 2], 2, "User", "a thousand is too much"),
        (&[1, 2, 1001], 3, "Panic", "at 1001"),
        (&[1006], 1, "Panic", "plain"),
        (
            &[1, 1002],
            2,
            "Encode { output: 0 }",
            "can't be written as JSON: NaN and infinity have no form in JSON",
        ),
    ];
    for (values, record, kind, message) in cases {
        let mut round = round(&[("a", None, &[1]), ("b", Some(stored), values), ("c", None, &[1])]);
        let failure = failed("sum", &mut round);
        assert_eq!((failure.record, &*format!("{:?}", failure.kind)), (record, kind));
        assert_eq!(failure.error.to_string(), message);
    }
}

#[test]
fn records_that_do_not_decode_name_their_part() {
    for (key, value, part) in [
        (Some(&b"\xff"[..]), Some(&b"1"[..]), RecordPart::Key),
        (None, Some(b"1"), RecordPart::Key),
        (Some(b"k"), Some(b"1 1"), RecordPart::Value),
        (Some(b"k"), None, RecordPart::Value),
    ] {
        let mut round = round(&[("a", None, &[1]), ("b", None, &[1, 1])]);
        round.records[2].key = key.map(Bytes::from_static);
        round.records[2].value = value.map(Bytes::from_static);
        let failure = failed("sum", &mut round);
        assert_eq!(failure.record, 2);
        assert!(matches!(failure.kind, FailureKind::Decode(found) if found == part), "{failure:?}");
    }
}

#[test]
fn a_state_of_another_version_is_a_failure_at_its_first_record() {
    let mut round = round(&[("a", None, &[1]), ("b", Some("\u{1}{\"total\":1}"), &[1, 2])]);
    let failure = failed("sum", &mut round);
    assert_eq!(failure.record, 1);
    assert!(matches!(failure.kind, FailureKind::State { version: Some(1) }));
}

#[test]
fn buckets_that_wait_run_together_and_keep_their_order_inside() {
    let mut round =
        round(&[("a", None, &[3, 1]), ("b", None, &[0]), ("c", None, &[1, 0, 2]), ("d", None, &[0])]);
    let (outputs, _) = done("slow", &mut round);
    let of = |key: &str| -> Vec<&str> {
        outputs.iter().filter(|output| output.1 == key).map(|output| &*output.2).collect()
    };
    assert_eq!(
        (of("a"), of("b"), of("c"), of("d")),
        (vec!["3", "1"], vec!["0"], vec!["1", "0", "2"], vec!["0"])
    );
    // Those that need not wait were done first, in order.
    assert_eq!((&*outputs[0].1, &*outputs[1].1), ("b", "d"));
    assert!(MOST.load(Ordering::SeqCst) >= 2);
}

#[test]
fn waiting_buckets_have_states_and_failures_too() {
    let mut round = self::round(&[("a", None, &[1004, 1]), ("b", None, &[1004, 2]), ("c", None, &[1])]);
    let (outputs, changes) = done("sum", &mut round);
    assert_eq!(outputs.len(), 5);
    assert_eq!(
        changes,
        [set("\u{2}{\"total\":1005}"), set("\u{2}{\"total\":1006}"), set("\u{2}{\"total\":1}")]
    );
    let mut round = self::round(&[("a", None, &[1004, 1001]), ("b", None, &[1004])]);
    let failure = failed("sum", &mut round);
    assert!(failure.record == 1 && matches!(failure.kind, FailureKind::Panic));
}

#[test]
fn a_custom_key_is_computed_from_the_decoded_input() {
    let stage = stage("both");
    let mut record = raw("k", "12", 0);
    assert_eq!(stage.key(&record).unwrap(), "12");
    record.input = 1;
    assert_eq!(stage.key(&record).unwrap(), "-12");
    record.value = Some("1000".into());
    let (kind, error): (_, BoxError) = stage.key(&record).unwrap_err();
    assert!(matches!(kind, FailureKind::Panic) && error.to_string() == "too large");
    record.value = Some("x".into());
    assert!(matches!(stage.key(&record).unwrap_err().0, FailureKind::Decode(RecordPart::Value)));
}

#[test]
fn the_input_index_chooses_the_variant() {
    let mut round = round(&[("a", None, &[1, 2])]);
    round.records[1].input = 1;
    let (outputs, _) = done("both", &mut round);
    assert_eq!(outputs.iter().map(|output| &*output.2).collect::<Vec<_>>(), ["1", "-2"]);
}

#[test]
fn past_the_budget_nothing_of_the_round_counts() {
    let mut outputs = Outputs::default();
    // Three times key and value of one byte each.
    let buckets: [(&str, Option<&str>, &[i64]); 2] = [("a", None, &[1, 2]), ("b", None, &[3])];
    assert!(matches!(run("pass", &mut round(&buckets), &mut outputs, 5), Ok(RoundEnd::OverBudget)));
    assert!(outputs.records.is_empty() && outputs.bytes.is_empty());
    assert!(matches!(run("pass", &mut round(&buckets), &mut outputs, 6), Ok(RoundEnd::Done)));
    // A round of one record may be as large as it likes.
    assert!(matches!(run("pass", &mut round(&[("a", None, &[1])]), &mut outputs, 0), Ok(RoundEnd::Done)));
}

#[test]
fn changed_state_counts_for_the_budget() {
    let mut outputs = Outputs::default();
    let buckets: [(&str, Option<&str>, &[i64]); 2] = [("a", None, &[1003]), ("b", None, &[1005])];
    let size = 1 + "\u{2}{\"total\":}".len() + i64::MAX.to_string().len();
    let mut small = round(&buckets);
    assert!(matches!(run("sum", &mut small, &mut outputs, size - 1), Ok(RoundEnd::OverBudget)));
    assert_eq!(small.buckets[1].change, StateChange::Unchanged);
    assert!(matches!(run("sum", &mut round(&buckets), &mut outputs, size), Ok(RoundEnd::Done)));
}

#[test]
fn a_round_that_is_dropped_leaves_nothing() {
    let mut outputs = Outputs::default();
    let mut round = round(&[("a", None, &[0]), ("b", None, &[5])]);
    let env = Env::default();
    {
        let mut future = stage("slow").round(&mut round, &mut outputs, &env, usize::MAX);
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert!(outputs.records.is_empty() && outputs.bytes.is_empty());
}

#[test]
fn records_cost_no_allocation() {
    const RECORDS: usize = 1_000;
    let mut round = Round::new(vec![], vec![]);
    for n in 0..RECORDS {
        round.records.push(raw("key", "value", n as i64));
        round.buckets.push(Bucket::new(b"key"[..].into(), n..n + 1));
    }
    let mut outputs = Outputs::default();
    let env = Env::default();
    run("pass", &mut round, &mut outputs, usize::MAX).unwrap();
    outputs.truncate(Mark::default());
    let mut end = None;
    let count = allocation_counter::measure(|| {
        end = Some(block_on(stage("pass").round(&mut round, &mut outputs, &env, usize::MAX)));
    })
    .count_total;
    assert!(matches!(end, Some(Ok(RoundEnd::Done))) && outputs.records.len() == RECORDS);
    // The round's future, the place for the buckets' futures, the output's two buffers and the pool.
    assert!(count <= 8, "{count} allocations for {RECORDS} records");
}
