//! State of older versions (S2.7): read through the steps that its type names, written only where it changes.
#![allow(missing_docs)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use flechtwerk::Pipeline;
use flechtwerk::glue::{Bucket, Env, Failure, FailureKind, Outputs, RawRecord, Round, RoundEnd, StateChange};
use flechtwerk::prelude::*;
use flechtwerk::testing::Driver;
use serde::{Deserialize, Serialize};

#[topic("payments", key = Utf8, value = Json<i64>)]
pub struct Payments;
#[topic("totals", key = Utf8, value = Utf8)]
pub struct Totals;

/// Version 1 was a number of whole euros.
type Euros = i64;

#[derive(State, Serialize, Deserialize)]
#[state(version = 2)]
pub struct Cents {
    cents: i64,
}

#[derive(State, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[state(
    version = 3,
    upgrade_from(2 = Cents, with = with_currency),
    upgrade_from(1 = Euros, with = cents),
)]
pub struct Total {
    cents: i64,
    currency: String,
}

/// The first step can fail.
fn cents(euros: Euros) -> Result<Cents, String> {
    let cents = euros.checked_mul(100).ok_or("more cents than fit")?;
    Ok(Cents { cents })
}

fn with_currency(old: Cents) -> Total {
    assert!(old.cents != -1, "a step that panics");
    Total { cents: old.cents, currency: "EUR".into() }
}

/// 0 only looks.
#[transformer(inputs = [Payments], state = Total)]
pub async fn add(
    payment: Record<Payments>,
    state: &mut State<Total>,
    out: &mut Out<Totals>,
) -> flechtwerk::Result {
    if payment.value != 0 {
        let zero = || Total { cents: 0, currency: "EUR".into() };
        state.get_or_insert_with(zero).cents += payment.value;
    }
    let text = state.as_ref().map_or("nothing".into(), |total| format!("{} {}", total.cents, total.currency));
    out.send(payment.key, text);
    Ok(())
}

#[transformer(inputs = [Payments], state = Cents)]
pub async fn old_add(payment: Record<Payments>, state: &mut State<Cents>) -> flechtwerk::Result {
    let cents = state.as_ref().map_or(0, |state| state.cents) + payment.value;
    state.set(Cents { cents });
    Ok(())
}

flechtwerk::pipeline!(ADD = "add": [add]);
flechtwerk::pipeline!(OLD = "old": [old_add]);

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

/// What becomes of a stored state, and the text that is sent for the last value.
fn run(pipeline: &Pipeline, stored: &[u8], values: &[i64]) -> Result<(StateChange, String), Failure> {
    let record = |(offset, value): (usize, &i64)| RawRecord {
        input: 0,
        partition: 4,
        offset: 10 + offset as i64,
        timestamp: 0,
        key: Some(Bytes::from_static(b"k")),
        value: Some(value.to_string().into()),
        headers: Headers::default(),
    };
    let records: Vec<_> = values.iter().enumerate().map(record).collect();
    let state = Some(stored.into());
    let bucket = Bucket { state, ..Bucket::new(b"k"[..].into(), 0..records.len()) };
    let (mut round, mut outputs) = (Round::new(records, vec![bucket]), Outputs::default());
    let end = block_on(pipeline.stages[0].round(&mut round, &mut outputs, &Env::default(), usize::MAX))?;
    assert!(matches!(end, RoundEnd::Done));
    let sent = outputs.records.last().and_then(|last| last.value.as_ref());
    let sent = sent.map_or(String::new(), |range| String::from_utf8_lossy(outputs.slice(range)).into_owned());
    Ok((round.buckets[0].change.clone(), sent))
}

const NEW: &[u8] = b"\x03{\"cents\":700,\"currency\":\"EUR\"}";

#[test]
fn each_older_version_is_read_through_all_steps() {
    for stored in [&b"\x017"[..], b"\x02{\"cents\":700}", NEW] {
        let (_, sent) = run(&ADD, stored, &[0]).unwrap();
        assert_eq!(sent, "700 EUR");
    }
}

#[test]
fn what_is_only_read_is_not_written() {
    for stored in [&b"\x017"[..], b"\x02{\"cents\":700}", NEW] {
        let (change, _) = run(&ADD, stored, &[0, 0]).unwrap();
        assert_eq!(change, StateChange::Unchanged);
    }
}

#[test]
fn what_changes_is_written_in_the_current_version() {
    for stored in [&b"\x017"[..], b"\x02{\"cents\":700}", NEW] {
        let (change, sent) = run(&ADD, stored, &[5]).unwrap();
        assert_eq!(change, StateChange::Set(b"\x03{\"cents\":705,\"currency\":\"EUR\"}"[..].into()));
        assert_eq!(sent, "705 EUR");
    }
    // Changed and changed back: of an old version that is a change, of the current one it is none.
    assert_eq!(run(&ADD, NEW, &[5, -5]).unwrap().0, StateChange::Unchanged);
    assert_eq!(run(&ADD, b"\x017", &[5, -5]).unwrap().0, StateChange::Set(NEW.into()));
}

#[test]
fn other_versions_are_refused_as_ever() {
    for (stored, version) in [(&b"\x04{}"[..], 4), (b"\x000", 0), (b"\x80\x01{}", 128)] {
        let failure = run(&ADD, stored, &[0]).unwrap_err();
        assert!(matches!(failure.kind, FailureKind::State { version: Some(found) } if found == version));
        let text = format!("the stored state is of version {version}, this program knows versions 1 to 3");
        assert_eq!(failure.error.to_string(), text);
    }
    // An old type among the steps of another does not know what comes after it.
    let failure = run(&OLD, NEW, &[1]).unwrap_err();
    assert_eq!(failure.error.to_string(), "the stored state is of version 3, this program knows version 2");
    let failure = run(&OLD, b"\x017", &[1]).unwrap_err();
    assert!(matches!(failure.kind, FailureKind::State { version: Some(1) }));
}

#[test]
fn a_step_that_fails_is_a_failure_of_its_record() {
    let stored = format!("\x01{}", i64::MAX);
    let failure = run(&ADD, stored.as_bytes(), &[0]).unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Upgrade { version: 1 }));
    assert_eq!((failure.record, failure.error.to_string().as_str()), (0, "more cents than fit"));
}

#[test]
fn a_step_that_panics_is_a_panic_of_the_stage() {
    let failure = run(&ADD, b"\x02{\"cents\":-1}", &[0]).unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Panic));
    assert_eq!(failure.error.to_string(), "a step that panics");
}

#[test]
fn an_old_state_that_is_none_is_a_failure_without_its_bytes() {
    let failure = run(&ADD, b"\x02{\"cents\":\"secret\"}", &[0]).unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Upgrade { version: 2 }));
    assert!(!failure.error.to_string().contains("secret"), "{}", failure.error);
}

#[test]
fn the_driver_can_begin_with_old_states() {
    let mut driver = Driver::new(&ADD);
    driver.set_state::<Euros>("add", "ann", &7);
    driver.set_state("add", "bob", &Cents { cents: 50 });
    driver.send::<Payments>("ann".into(), 5);
    driver.send::<Payments>("bob".into(), 0);
    driver.run_blocking().unwrap();
    let mut sent: Vec<_> = driver.read::<Totals>().into_iter().map(|total| total.value).collect();
    sent.sort();
    assert_eq!(sent, ["50 EUR", "705 EUR"]);
    assert_eq!(driver.state::<Total>("add", "ann").unwrap().cents, 705);
    // Not written: it is still of its old version.
    assert_eq!(driver.state::<Cents>("add", "bob").unwrap().cents, 50);
}

#[test]
fn a_failed_upgrade_names_the_place_and_nothing_counts() {
    let mut driver = Driver::new(&ADD).partitions(1);
    driver.set_state::<Euros>("add", "ann", &i64::MAX);
    driver.send::<Payments>("bob".into(), 5);
    driver.send::<Payments>("ann".into(), 5);
    let message = driver.run_blocking().unwrap_err().to_string();
    let place =
        "stage `add` failed at payments/0 offset 1: the stored state of version 1 can't be upgraded: ";
    assert!(message.starts_with(place), "{message}");
    assert!(driver.read::<Totals>().is_empty());
    assert!(driver.state::<Total>("add", "bob").is_none());
}
