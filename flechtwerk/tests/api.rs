//! The public face: stages as plain functions, topics, outputs, all that a user may write.
#![deny(warnings)]
#![allow(missing_docs, unreachable_pub)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;
#[topic("counts", key = Utf8, value = Json<u64>)]
pub struct Counts;
#[topic("profiles", key = Utf8, value = Nullable<Utf8>)]
pub struct Profiles;
#[topic("updates", key = Utf8, value = BigEndian<u64>)]
pub struct Updates;
#[topic("raw.bytes", key = Nullable<Bytes>, value = Bytes)]
struct Raw;

#[derive(State, Serialize, Deserialize, Default, Clone)]
pub struct Count {
    n: u64,
}

#[transformer(inputs = [Words], state = Count)]
pub async fn count(
    word: Record<Words>,
    state: &mut State<Count>,
    out: &mut Out<Counts>,
) -> flechtwerk::Result {
    let count = state.get_or_insert_default();
    count.n += 1;
    out.send(word.key, count.n);
    Ok(())
}

/// Private types everywhere.
#[derive(State, Serialize, Deserialize, Default, Clone)]
#[state(version = 3)]
struct Profile {
    text: String,
}

#[derive(Input)]
enum Trip {
    Profile(Record<Profiles>),
    Update(Record<Updates>),
    #[cfg(any())]
    Never(Record<Nothing>),
}

#[transformer(inputs = [Profiles, Updates], state = Profile, order = timestamp, start = latest)]
async fn delays(
    trip: Trip,
    state: &mut State<Profile>,
    out: &mut Out<Counts>,
) -> Result<(), std::fmt::Error> {
    match trip {
        Trip::Profile(Record { value: None, .. }) => state.clear(),
        Trip::Profile(Record { value: Some(text), .. }) => state.set(Profile { text }),
        Trip::Update(update) => {
            let n = state.as_ref().map_or(0, |profile| profile.text.len() as u64);
            tick().await;
            out.send(update.key, update.value + n);
        }
    }
    Ok(())
}

/// Waits once.
async fn tick() {
    let mut waited = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

// Aliases, attributes above and below, raw names, patterns, no outputs.
type Rec<T> = Record<T>;
type Counted = State<Count>;

#[allow(clippy::needless_return)]
#[transformer(inputs = [Words], state = Count, name = "above", application_id = "some-thing")]
#[cold]
pub async fn aliases(word: Rec<Words>, state: &mut Counted) -> flechtwerk::Result {
    let _ = (word, state.take());
    return Ok(());
}

#[transformer(inputs = [r#Words], key = by_value)]
pub async fn r#match(
    Record { r#key, value: _, .. }: Record<Words>,
    r#out: &mut flechtwerk::Out<Counts>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    out.send(key, 0);
    Ok(())
}

fn by_value(word: &Record<Words>) -> &str {
    &word.value
}

#[cfg(any())]
#[transformer(inputs = [Words])]
pub async fn never_above(_: Record<Words>) -> flechtwerk::Result {
    Ok(())
}

#[transformer(inputs = [Words])]
#[cfg(any())]
pub async fn never_below(_: Record<Words>) -> flechtwerk::Result {
    Ok(())
}

pub mod inner {
    use super::*;

    #[transformer(inputs = [Raw])]
    pub(crate) async fn copy(raw: Record<Raw>, out: &mut Out<Raw>) -> flechtwerk::Result {
        out.send_record(OutRecord::new(raw.key, raw.value).headers(raw.headers).header("copied", b"yes"));
        Ok(())
    }
}

/// Where flechtwerk has another name.
pub mod renamed {
    extern crate flechtwerk as fw;

    use fw::{Record, codec::Utf8};

    #[fw::topic("words-2", key = Utf8, value = Utf8, crate = self::fw)]
    pub struct Words;

    #[derive(fw::State, serde::Serialize, serde::Deserialize)]
    #[state(crate = self::fw)]
    pub struct Seen;

    #[derive(fw::Input)]
    #[input(crate = self::fw)]
    pub enum Any {
        Word(Record<Words>),
    }

    #[fw::transformer(inputs = [Words], state = Seen, crate = self::fw)]
    pub async fn see(any: Any, seen: &mut fw::State<Seen>) -> fw::Result {
        let Any::Word(word) = any;
        seen.set(Seen);
        drop(word);
        Ok(())
    }

    fw::pipeline!(pub RENAMED = "renamed": [see]);
}

flechtwerk::pipeline!(
    /// All of it.
    pub ALL = "all": [
        count,
        delays,
        aliases,
        r#match,
        inner::copy,
        #[cfg(any())] never_above,
        #[cfg(any())] never_below,
    ],
);

/// Runs a future to its end; those here wake themselves.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

#[test]
fn a_stage_is_still_a_function() {
    let (mut state, mut out) = (State::default(), Out::default());
    for _ in 0..2 {
        block_on(count(Record::new("a".into(), "x".into()), &mut state, &mut out)).unwrap();
    }
    assert_eq!(out.sent(), [("a".to_string(), 1), ("a".to_string(), 2)]);
    assert_eq!(state.as_ref().unwrap().n, 2);
}

#[test]
fn an_input_can_be_made_in_a_test() {
    let (mut state, mut out) = (State::new(Profile { text: "abc".into() }), Out::default());
    block_on(delays(Trip::Update(Record::new("k".into(), 10)), &mut state, &mut out)).unwrap();
    assert_eq!(out.sent(), [("k".to_string(), 13)]);
    block_on(delays(Trip::Profile(Record::new("k".into(), None)), &mut state, &mut out)).unwrap();
    assert!(state.is_none());
}

/// The program is made with and without the feature `kafka`.
mod program {
    flechtwerk::main!(super::ALL);

    const _: fn() -> std::process::ExitCode = main;
}

#[test]
fn a_pipeline_knows_its_stages() {
    let names: Vec<_> = ALL.stages.iter().map(|stage| stage.info().name).collect();
    assert_eq!(ALL.name(), "all");
    assert_eq!(names, ["count", "delays", "above", "match", "copy"]);
    let delays = ALL.stages[1].info();
    assert_eq!(delays.inputs.iter().map(|topic| topic.name).collect::<Vec<_>>(), ["profiles", "updates"]);
    assert_eq!(delays.outputs().map(|topic| topic.name).collect::<Vec<_>>(), ["counts"]);
    assert_eq!(delays.state().unwrap().version, 3);
    assert_eq!(delays.state().unwrap().type_name, "Profile");
    assert_eq!(
        (delays.order, delays.start),
        (flechtwerk::glue::Order::Timestamp, flechtwerk::glue::Start::Latest)
    );
    assert_eq!(ALL.stages[2].info().application_id, Some("some-thing"));
    assert!(ALL.stages[3].info().custom_key && !delays.custom_key);
    let raw = ALL.stages[4].info().inputs[0];
    assert_eq!((raw.id, raw.key_codec, raw.value_codec), ("api::Raw", "Nullable<Bytes>", "Bytes"));
    assert!(raw.key_nullable && !delays.inputs[0].key_nullable);
}

#[test]
fn flechtwerk_may_have_another_name() {
    assert_eq!(renamed::RENAMED.stages[0].info().name, "see");
}

#[test]
fn outputs_carry_what_they_were_given() {
    let mut out = Out::<Raw>::default();
    let record = Record::<Raw>::new(None, Bytes::from_static(b"v")).with_header("h", "1");
    block_on(inner::copy(record, &mut out)).unwrap();
    out.send_record(OutRecord::new(Some("k".into()), Bytes::new()).timestamp(5).partition(2));
    let sent = out.sent_records();
    assert_eq!((sent[0].key.as_ref(), &sent[0].value[..]), (None, &b"v"[..]));
    assert_eq!(sent[0].headers.iter().map(|header| &*header.name).collect::<Vec<_>>(), ["h", "copied"]);
    assert_eq!((sent[0].timestamp, sent[0].partition), (None, None));
    assert_eq!((sent[1].timestamp, sent[1].partition), (Some(5), Some(2)));
}

#[test]
fn nothing_shows_payloads() {
    let record = Record::<Words>::new("secret".into(), "secret".into()).with_header("h", "secret");
    let mut out = Out::<Words>::default();
    out.send("secret".into(), "secret".into());
    let state = State::new(Count { n: 4711 });
    let sent = out.sent_records();
    let text = format!("{record:?} {:?} {out:?} {state:?} {sent:?}", record.headers);
    assert!(!text.contains("secret") && !text.contains("4711"), "{text}");
    assert!(text.starts_with("words/0 offset 0"), "{text}");
}

#[test]
#[should_panic = "a record for topic \"counts\" could not be encoded: the partition is negative"]
fn what_can_not_be_encoded_shows_in_a_test() {
    let mut out = Out::<Counts>::default();
    out.send_record(OutRecord::new("a".into(), 1).partition(-1));
    out.sent();
}
