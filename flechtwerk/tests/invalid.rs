//! What a stage may decide about records that don't decode (S8.2), in memory: each answer, and answers that can't be
//! carried out.
#![allow(missing_docs)]

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use flechtwerk::Pipeline;
use flechtwerk::glue::{
    AnyStage, Bucket, Decided, Env, FailureKind, Outputs, RawRecord, RecordPart, Round, RoundEnd, Settled,
};
use flechtwerk::invalid::{self, Answer, DeadLetter, Invalid, headers};
use flechtwerk::prelude::*;
use flechtwerk::testing::Driver;

#[topic("amounts", key = Utf8, value = Json<f64>)]
pub struct Amounts;
#[topic("names", key = Utf8, value = Utf8)]
pub struct Names;
#[topic("sums", key = Utf8, value = Json<f64>)]
pub struct Sums;
#[topic("dead", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct Dead;

#[derive(Input)]
pub enum Either {
    Amount(Record<Amounts>),
    Name(Record<Names>),
}

/// Does what the bytes of the value say.
fn obey(record: &Invalid<'_>) -> Answer {
    match record.value().map(|value| &value[..]) {
        Some(b"skip") => Answer::Skip,
        Some(b"seven") => record.value_of::<Amounts>().map_or(Answer::Crash, |value| value.instead(7.0)),
        Some(b"nan") => record.value_of::<Amounts>().map_or(Answer::Crash, |value| value.instead(f64::NAN)),
        Some(b"other topic") => record.value_of::<Names>().map_or(Answer::Skip, |_| Answer::Crash),
        Some(b"panic") => panic!("asked for a panic"),
        Some(b"dead") => Answer::DeadLetter,
        _ => Answer::Crash,
    }
}

#[transformer(inputs = [Amounts], state = f64, on_invalid = obey, dead_letters = Dead)]
pub async fn sum(amount: Record<Amounts>, sum: &mut State<f64>, out: &mut Out<Sums>) -> flechtwerk::Result {
    if amount.value == 1000.0 {
        return Err("a thousand is too much".into());
    }
    let total = sum.unwrap_or_default() + amount.value;
    sum.set(total);
    out.send(amount.key, total);
    Ok(())
}

#[transformer(inputs = [Amounts], on_invalid = obey)]
pub async fn no_topic(amount: Record<Amounts>, out: &mut Out<Sums>) -> flechtwerk::Result {
    out.send(amount.key, amount.value);
    Ok(())
}

#[transformer(inputs = [Names, Amounts], on_invalid = invalid::dead_letter, dead_letters = Dead)]
pub async fn all_dead(either: Either) -> flechtwerk::Result {
    drop(either);
    Ok(())
}

#[transformer(inputs = [Names, Amounts], on_invalid = per_topic)]
pub async fn both(either: Either, out: &mut Out<Sums>) -> flechtwerk::Result {
    match either {
        Either::Amount(amount) => out.send(amount.key, amount.value),
        Either::Name(name) => out.send(name.key, name.value.len() as f64),
    }
    Ok(())
}

/// Each topic has a value of its own type.
fn per_topic(record: &Invalid<'_>) -> Answer {
    if let Some(name) = record.value_of::<Names>() {
        return name.instead("1234".into());
    }
    if let Some(amount) = record.value_of::<Amounts>() {
        return amount.instead(0.5);
    }
    assert_eq!(record.part(), RecordPart::Key, "only keys can't be replaced");
    Answer::Skip
}

#[transformer(inputs = [Amounts], on_invalid = invalid::skip)]
pub async fn skipping(amount: Record<Amounts>, out: &mut Out<Sums>) -> flechtwerk::Result {
    out.send(amount.key, amount.value);
    Ok(())
}

#[transformer(inputs = [Amounts], on_invalid = invalid::crash)]
pub async fn crashing(amount: Record<Amounts>, out: &mut Out<Sums>) -> flechtwerk::Result {
    out.send(amount.key, amount.value);
    Ok(())
}

fn whole_part(amount: &Record<Amounts>) -> String {
    format!("{}", amount.value as i64)
}

thread_local! {
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

/// Gives another value each time where it is asked to; else does what the value says.
fn fickle(record: &Invalid<'_>) -> Answer {
    if record.value().is_some_and(|value| &value[..] == b"fickle") {
        let asked = ASKED.get() + 1;
        ASKED.set(asked);
        return record.value_of::<Amounts>().map_or(Answer::Skip, |value| value.instead(asked.into()));
    }
    obey(record)
}

#[transformer(inputs = [Amounts], state = u64, key = whole_part, on_invalid = fickle, dead_letters = Dead)]
pub async fn by_whole_part(amount: Record<Amounts>, seen: &mut State<u64>) -> flechtwerk::Result {
    drop(amount);
    *seen.get_or_insert_default() += 1;
    Ok(())
}

flechtwerk::pipeline!(SUM = "sum": [sum]);
flechtwerk::pipeline!(NO_TOPIC = "no-topic": [no_topic]);
flechtwerk::pipeline!(ALL_DEAD = "all-dead": [all_dead]);
flechtwerk::pipeline!(BOTH = "both": [both]);
flechtwerk::pipeline!(READY = "ready": [skipping]);
flechtwerk::pipeline!(CRASHING = "crashing": [crashing]);
flechtwerk::pipeline!(KEYED = "keyed": [by_whole_part]);

fn values(driver: &mut Driver) -> Vec<f64> {
    driver.read::<Sums>().into_iter().map(|record| record.value).collect()
}

/// A pipeline over values of one key.
fn driver(pipeline: &Pipeline, values: &[&str]) -> Driver {
    let mut driver = Driver::new(pipeline).partitions(1);
    for value in values {
        driver.send_raw::<Amounts>(Some(b"k"), Some(value.as_bytes()));
    }
    driver
}

fn message(pipeline: &Pipeline, values: &[&str]) -> String {
    let mut driver = driver(pipeline, values);
    let message = driver.run_blocking().unwrap_err().to_string();
    assert!(driver.records::<Sums>().is_empty(), "nothing of the round counts");
    message
}

#[test]
fn skipped_records_leave_the_others_as_they_are() {
    let mut driver = driver(&SUM, &["1", "skip", "2", "skip"]);
    driver.run_blocking().unwrap();
    assert_eq!(values(&mut driver), [1.0, 3.0]);
    assert_eq!(driver.state::<f64>("sum", "k"), Some(3.0));
    assert!(driver.read::<Dead>().is_empty());
}

#[test]
fn another_value_takes_the_place_of_one_that_does_not_decode() {
    let mut driver = driver(&SUM, &["1", "seven", "2"]);
    driver.run_blocking().unwrap();
    assert_eq!(values(&mut driver), [1.0, 8.0, 10.0]);
}

#[test]
fn a_dead_letter_is_the_record_and_where_it_came_from() {
    let mut driver = driver(&SUM, &["1", "dead", "2"]);
    driver.run_blocking().unwrap();
    assert_eq!(values(&mut driver), [1.0, 3.0]);
    let dead = driver.read::<Dead>();
    assert_eq!(dead.len(), 1);
    let dead = &dead[0];
    assert_eq!(
        (dead.key.as_deref(), dead.value.as_deref(), dead.timestamp),
        (Some(&b"k"[..]), Some(&b"dead"[..]), Some(1))
    );
    let header = |name| std::str::from_utf8(dead.headers.get(name).unwrap()).unwrap();
    assert_eq!(header(headers::TOPIC), "amounts");
    assert_eq!(header(headers::PARTITION), "0");
    assert_eq!(header(headers::OFFSET), "1");
    assert_eq!(header(headers::TIMESTAMP), "1");
    assert_eq!(header(headers::PART), "value");
    assert_eq!(header(headers::STAGE), "sum");
    assert!(header(headers::ERROR).contains("expected JSON of a `f64`"), "{}", header(headers::ERROR));
    assert_eq!(dead.headers.len(), 7);
}

#[test]
fn null_and_undecodable_keys_become_dead_letters_too() {
    let mut driver = Driver::new(&ALL_DEAD).partitions(1);
    driver.send_raw::<Names>(None, Some(b"x"));
    driver.send_raw::<Names>(Some(b"\xff"), Some(b"\xff"));
    driver.send_raw::<Names>(Some(b"k"), None);
    driver.send_raw::<Amounts>(Some(b"k"), Some(b"nothing"));
    driver.run_blocking().unwrap();
    let dead = driver.read::<Dead>();
    let text = |bytes: Option<&Bytes>| bytes.map_or("null".into(), |bytes| bytes.escape_ascii().to_string());
    let shown: Vec<_> = dead
        .iter()
        .map(|dead| {
            let header = |name| text(dead.headers.get(name));
            let record = (text(dead.key.as_ref()), text(dead.value.as_ref()));
            format!("{} {} of {}: {}", record.0, record.1, header(headers::TOPIC), header(headers::PART))
        })
        .collect();
    let expected = [
        "null x of names: key",
        "\\xff \\xff of names: key",
        "k null of names: value",
        "k nothing of amounts: value",
    ];
    // Keys have no order among them.
    assert_eq!(shown.len(), expected.len());
    for one in expected {
        assert!(shown.iter().any(|shown| shown == one), "{one:?} in {shown:?}");
    }
}

#[test]
fn each_input_has_a_value_of_its_own_type() {
    let mut driver = Driver::new(&BOTH).partitions(1);
    driver.send_raw::<Names>(Some(b"k"), Some(b"\xff"));
    driver.send_raw::<Amounts>(Some(b"k"), Some(b"x"));
    driver.send_raw::<Amounts>(Some(b"\xff"), Some(b"1"));
    driver.run_blocking().unwrap();
    assert_eq!(values(&mut driver), [4.0, 0.5]);
}

#[test]
fn the_ready_made_functions_do_as_they_are_called() {
    let mut driver = driver(&READY, &["1", "x", "2"]);
    driver.run_blocking().unwrap();
    assert_eq!(values(&mut driver), [1.0, 2.0]);
    let text = "stage `crashing` failed at amounts/0 offset 1: the value can't be decoded: ";
    assert!(message(&CRASHING, &["1", "x"]).starts_with(text));
}

#[test]
fn crash_is_as_if_there_were_no_function() {
    let message = message(&SUM, &["1", "skip", "dead", "x"]);
    assert!(
        message.starts_with("stage `sum` failed at amounts/0 offset 3: the value can't be decoded: "),
        "{message}"
    );
}

#[test]
fn a_dead_letter_without_a_topic_is_an_error_that_says_what_to_add() {
    let message = message(&NO_TOPIC, &["dead"]);
    assert!(message.contains("no_topic` failed at amounts/0 offset 0"), "{message}");
    assert!(message.contains("add `dead_letters = Topic`"), "{message}");
}

#[test]
fn a_value_that_can_not_be_written_is_an_error() {
    let message = message(&SUM, &["1", "nan"]);
    assert!(message.contains("the value that it gave can't be encoded"), "{message}");
}

#[test]
fn a_panic_of_the_function_is_one_of_the_stage() {
    let message = message(&SUM, &["panic"]);
    assert!(message.contains("amounts/0 offset 0: the code panicked: asked for a panic"), "{message}");
}

#[test]
fn a_value_of_another_topic_can_not_be_given() {
    let mut driver = driver(&SUM, &["other topic", "1"]);
    driver.run_blocking().unwrap();
    assert_eq!(values(&mut driver), [1.0]);
}

#[test]
fn the_state_key_is_that_of_the_other_value() {
    let mut driver = driver(&KEYED, &["7.5", "seven", "skip", "dead", "8"]);
    driver.run_blocking().unwrap();
    assert_eq!(driver.state::<u64>("by_whole_part", "7"), Some(2));
    assert_eq!(driver.state::<u64>("by_whole_part", "8"), Some(1));
    assert_eq!(driver.states::<u64>("by_whole_part").len(), 2);
    assert_eq!(driver.read::<Dead>().len(), 1);
}

#[test]
fn a_function_that_changes_its_mind_can_not_reach_another_state() {
    ASKED.set(0);
    let mut driver = driver(&KEYED, &["fickle"]);
    let message = driver.run_blocking().unwrap_err().to_string();
    assert!(message.contains("it must always give the same for one record"), "{message}");
    assert!(driver.states::<u64>("by_whole_part").is_empty());
}

#[test]
fn an_answer_that_was_made_for_another_record_is_refused() {
    thread_local!(static KEPT: Cell<Option<Answer>> = const { Cell::new(None) });
    /// Answers each record with what was meant for the one before.
    fn late(record: &Invalid<'_>) -> Answer {
        let now = record.value_of::<Amounts>().map(|value| value.instead(1.0));
        KEPT.replace(now).unwrap_or(Answer::Skip)
    }
    #[transformer(inputs = [Amounts], on_invalid = late)]
    async fn stage(amount: Record<Amounts>) -> flechtwerk::Result {
        drop(amount);
        Ok(())
    }
    flechtwerk::pipeline!(LATE = "late": [stage]);
    let message = message(&LATE, &["x", "y"]);
    assert!(
        message.contains("amounts/0 offset 1") && message.contains("made for another record"),
        "{message}"
    );
}

// ---- the contract of a round

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

fn round(values: &[&str]) -> Round {
    let record = |(offset, value): (usize, &&str)| RawRecord {
        input: 0,
        partition: 4,
        offset: offset as i64,
        timestamp: -1,
        key: Some(Bytes::from_static(b"k")),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        headers: Headers::default(),
    };
    let records: Vec<_> = values.iter().enumerate().map(record).collect();
    let bucket = Bucket::new(b"k"[..].into(), 0..records.len());
    Round::new(records, vec![bucket])
}

fn stage() -> &'static dyn AnyStage {
    SUM.stages[0]
}

#[test]
fn a_round_notes_what_was_decided_and_names_topics_as_the_cluster_does() {
    let (mut round, mut outputs) = (round(&["skip", "1", "seven", "dead"]), Outputs::default());
    let env = Env::default().for_inputs(vec!["prod.amounts".into()]);
    let end = block_on(stage().round(&mut round, &mut outputs, &env, usize::MAX)).unwrap();
    assert!(matches!(end, RoundEnd::Done));
    let decided: Vec<_> =
        outputs.invalid.iter().map(|Decided { at, settled }| (at.offset, *settled)).collect();
    assert_eq!(decided, [(0, Settled::Skip), (2, Settled::Instead), (3, Settled::DeadLetter)]);
    let dead = outputs.records.last().unwrap();
    let info = stage().info();
    assert_eq!(info.outputs().nth(dead.topic.into()).unwrap().name, "dead");
    assert_eq!(dead.headers.get(headers::TOPIC).unwrap(), "prod.amounts");
    // Without a timestamp there is none to name.
    assert!(dead.headers.iter().any(|header| &*header.name == headers::TIMESTAMP && header.value.is_none()));
    assert_eq!((dead.cause.partition, dead.cause.offset, dead.timestamp), (4, 3, -1));
}

#[test]
fn what_a_round_decided_is_undone_with_it() {
    let mut outputs = Outputs::default();
    let mut failing = round(&["dead", "skip", "1000"]);
    let failure =
        block_on(stage().round(&mut failing, &mut outputs, &Env::default(), usize::MAX)).err().unwrap();
    assert!(matches!(failure.kind, FailureKind::User) && failure.record == 2);
    assert!(outputs.records.is_empty() && outputs.invalid.is_empty() && outputs.bytes.is_empty());
    // A dead letter counts for the budget with all its bytes; run again alone it gives one, not two.
    let mut large = round(&["skip", "dead"]);
    let end = block_on(stage().round(&mut large, &mut outputs, &Env::default(), 20)).unwrap();
    assert!(matches!(end, RoundEnd::OverBudget));
    assert!(outputs.records.is_empty() && outputs.invalid.is_empty());
    let mut alone = round(&["dead"]);
    let end = block_on(stage().round(&mut alone, &mut outputs, &Env::default(), 20)).unwrap();
    assert!(matches!(end, RoundEnd::Done));
    assert_eq!((outputs.records.len(), outputs.invalid.len()), (1, 1));
}

#[test]
fn headers_of_the_record_stay_in_front_of_those_about_it() {
    let mut round = round(&["dead"]);
    round.records[0].headers.push("trace", Some(Bytes::from_static(b"7")));
    let mut outputs = Outputs::default();
    block_on(stage().round(&mut round, &mut outputs, &Env::default(), usize::MAX)).unwrap();
    let names: Vec<_> = outputs.records[0].headers.iter().map(|header| header.name.to_string()).collect();
    assert_eq!((names[0].as_str(), names.len()), ("trace", 8));
}

#[test]
fn nothing_about_an_invalid_record_shows_its_payload() {
    fn shown(record: &Invalid<'_>) -> Answer {
        let text = format!("{record:?} {:?}", record.value_of::<Amounts>());
        assert!(!text.contains("secret") && text.contains("amounts/0 offset 0"), "{text}");
        let answer = record.value_of::<Amounts>().map_or(Answer::Crash, |value| value.instead(12345.0));
        assert!(!format!("{answer:?}").contains("12345"), "{answer:?}");
        answer
    }
    #[transformer(inputs = [Amounts], on_invalid = shown)]
    async fn stage(amount: Record<Amounts>) -> flechtwerk::Result {
        assert_eq!(amount.value, 12345.0);
        Ok(())
    }
    flechtwerk::pipeline!(SHOWN = "shown": [stage]);
    driver(&SHOWN, &["secret"]).run_blocking().unwrap();
    assert!(matches!(Answer::from(DeadLetter), Answer::DeadLetter));
}
