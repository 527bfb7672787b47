//! Extractors as functions and in the in-memory driver.
#![allow(missing_docs)]

use std::time::Duration;

use flechtwerk::invalid::{Answer, Invalid};
use flechtwerk::prelude::*;
use flechtwerk::testing::Driver;
use serde::{Deserialize, Serialize};

/// How many items a source has, and what else is to happen.
#[derive(Serialize, Deserialize, Default)]
pub struct Source {
    items: u64,
    #[serde(default)]
    paused: bool,
}

#[topic("sources", key = Utf8, value = Nullable<Json<Source>>)]
pub struct Sources;
#[topic("archives", key = Utf8, value = Json<u64>)]
pub struct Archives;
#[topic("items", key = Utf8, value = Json<u64>)]
pub struct Items;
#[topic("doubled", key = Utf8, value = Json<u64>)]
pub struct Doubled;

fn paused(source: &Record<Sources>) -> bool {
    source.value.as_ref().is_none_or(|source| source.paused)
}

/// Two items a page.
#[extractor(config = Sources, state = u64, poll_interval = "30s", suspended = paused)]
pub async fn poll(
    source: &Record<Sources>,
    cursor: &mut State<u64>,
    out: &mut Out<Items>,
) -> flechtwerk::Result<Next> {
    let items = source.value.as_ref().map_or(0, |source| source.items);
    let begin = cursor.unwrap_or(0);
    let end = items.min(begin + 2);
    if begin == 666 {
        out.send(source.key.clone(), 666);
        return Err("this source is broken".into());
    }
    (begin..end).for_each(|item| out.send(source.key.clone(), item));
    if end > begin {
        cursor.set(end);
    }
    Ok(if end < items { Next::Again } else { Next::Idle })
}

/// No config, one cursor.
#[extractor(state = u64, poll_interval = "1min")]
pub async fn tick(cursor: &mut State<u64>, out: &mut Out<Items>) -> flechtwerk::Result<Next> {
    let tick = cursor.get_or_insert_default();
    *tick += 1;
    out.send("tick".into(), *tick);
    Ok(Next::After(Duration::from_secs(1)))
}

#[derive(Input)]
pub enum Either {
    Source(Record<Sources>),
    Archive(Record<Archives>),
}

fn by_kind(config: &Either) -> String {
    match config {
        Either::Source(source) => format!("s/{}", source.key),
        Either::Archive(archive) => format!("a/{}", archive.key),
    }
}

/// Two config topics, and no cursor where there is none to keep.
#[extractor(config = [Sources, Archives], poll_interval = "1h", key = by_kind)]
pub async fn names(config: &Either, out: &mut Out<Items>) -> Result<Next, std::io::Error> {
    out.send(by_kind(config), 1);
    Ok(Next::Idle)
}

/// What all calls share.
pub struct Multiplier(u64);

#[resource]
pub async fn multiplier() -> flechtwerk::Result<Multiplier> {
    Ok(Multiplier(10))
}

#[topic("factors", key = Utf8, value = Json<u64>)]
pub struct Factors;

/// Looks its config up in a table, and takes a resource.
#[extractor(config = Archives, poll_interval = "1h")]
pub async fn scaled(
    archive: &Record<Archives>,
    factors: &Table<Factors>,
    out: &mut Out<Items>,
    by: &Res<Multiplier>,
) -> flechtwerk::Result<Next> {
    let factor = factors.get(&archive.key).copied().unwrap_or(1);
    out.send(archive.key.clone(), archive.value * factor * by.0);
    Ok(Next::Idle)
}

/// A table and a resource need no config.
#[extractor(state = u64, poll_interval = "1h")]
pub async fn sizes(
    by: &Res<Multiplier>,
    seen: &mut State<u64>,
    factors: &Table<Factors>,
) -> flechtwerk::Result<Next> {
    seen.set(factors.len() as u64 * by.0);
    Ok(Next::Idle)
}

/// Never ends.
#[extractor(config = Archives, poll_interval = "1h")]
pub async fn endless(_: &Record<Archives>) -> flechtwerk::Result<Next> {
    Ok(Next::Again)
}

#[transformer(inputs = [Items])]
pub async fn double(item: Record<Items>, out: &mut Out<Doubled>) -> flechtwerk::Result {
    out.send(item.key, item.value * 2);
    Ok(())
}

/// An empty value is meant to be one.
fn mend(record: &Invalid<'_>) -> Answer {
    match record.value_of::<Limits>() {
        Some(value) if value.bytes().is_some_and(|bytes| bytes.is_empty()) => value.instead(1),
        _ => Answer::Skip,
    }
}

#[topic("limits", key = Utf8, value = Json<u64>, on_invalid = mend)]
pub struct Limits;

/// Sends its config.
#[extractor(config = Limits, poll_interval = "1h")]
pub async fn repeat(limit: &Record<Limits>, out: &mut Out<Items>) -> flechtwerk::Result<Next> {
    out.send(limit.key.clone(), limit.value);
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub FEEDS = "feeds": [poll, tick, names, endless, double, scaled, sizes, repeat], resources = [multiplier]);

fn source(items: u64) -> Option<Source> {
    Some(Source { items, ..Source::default() })
}

fn values(driver: &mut Driver) -> Vec<(String, u64)> {
    let mut all: Vec<_> = driver.read::<Items>().into_iter().map(|item| (item.key, item.value)).collect();
    all.sort();
    all
}

/// Runs a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn an_extractor_is_a_function() {
    let (mut cursor, mut out) = (State::new(2), Out::default());
    let config = Record::new("a".into(), source(3));
    assert_eq!(ready(poll(&config, &mut cursor, &mut out)).unwrap(), Next::Idle);
    assert_eq!((*cursor, out.sent()), (Some(3), vec![("a".to_owned(), 2)]));
}

#[test]
fn the_driver_polls_every_config_to_its_end() {
    let mut driver = Driver::new(&FEEDS);
    driver.send::<Sources>("a".into(), source(5));
    driver.send::<Sources>("b".into(), source(1));
    assert_eq!(driver.poll_blocking("poll").unwrap(), 4);
    assert_eq!(values(&mut driver).len(), 6);
    assert_eq!(driver.state::<u64>("poll", "a"), Some(5));
    // Nothing new: one call each, and no more.
    assert_eq!(driver.poll_blocking("poll").unwrap(), 2);
    assert!(values(&mut driver).is_empty());
    // More in the source, and the cursor goes on.
    driver.send::<Sources>("b".into(), source(2));
    driver.poll_blocking("poll").unwrap();
    assert_eq!(values(&mut driver), [("b".to_owned(), 1)]);
}

#[test]
fn tombstoned_and_suspended_configs_keep_their_cursors() {
    let mut driver = Driver::new(&FEEDS);
    for key in ["gone", "paused"] {
        driver.send::<Sources>(key.into(), source(1));
    }
    driver.poll_blocking("poll").unwrap();
    assert_eq!(values(&mut driver).len(), 2);
    driver.send::<Sources>("gone".into(), None);
    driver.send::<Sources>("paused".into(), Some(Source { items: 9, paused: true }));
    assert_eq!(driver.poll_blocking("poll").unwrap(), 0);
    assert_eq!(driver.states::<u64>("poll").len(), 2);
    driver.send::<Sources>("gone".into(), source(2));
    driver.poll_blocking("poll").unwrap();
    assert_eq!(values(&mut driver), [("gone".to_owned(), 1)]);
}

#[test]
fn an_error_takes_its_page_back_and_no_other() {
    let mut driver = Driver::new(&FEEDS);
    driver.send::<Sources>("a".into(), source(668));
    let failed = driver.poll_blocking("poll").unwrap_err();
    let text = failed.to_string();
    assert!(text.starts_with("stage `poll` failed at sources/"), "{text}");
    assert!(text.ends_with("the function returned an error: this source is broken"), "{text}");
    assert_eq!(values(&mut driver).len(), 666);
    assert_eq!(driver.state::<u64>("poll", "a"), Some(666));
}

#[test]
fn without_a_config_topic_there_is_one_config() {
    let mut driver = Driver::new(&FEEDS);
    for calls in 1..=2 {
        assert_eq!(driver.poll_blocking("tick").unwrap(), 1);
        assert_eq!(values(&mut driver), [("tick".to_owned(), calls)]);
    }
    assert_eq!(driver.state::<u64>("tick", ""), Some(2));
}

#[test]
fn configs_may_come_from_several_topics() {
    let mut driver = Driver::new(&FEEDS);
    driver.send::<Sources>("x".into(), source(1));
    driver.send::<Archives>("x".into(), 1);
    driver.poll_blocking("names").unwrap();
    assert_eq!(values(&mut driver), [("a/x".to_owned(), 1), ("s/x".to_owned(), 1)]);
}

#[test]
fn an_extractor_looks_at_tables_and_resources() {
    let mut driver = Driver::new(&FEEDS).resource(Multiplier(10));
    driver.send::<Factors>("x".into(), 7);
    driver.send::<Archives>("x".into(), 2);
    driver.send::<Archives>("y".into(), 2);
    driver.poll_blocking("scaled").unwrap();
    assert_eq!(values(&mut driver), [("x".to_owned(), 140), ("y".to_owned(), 20)]);
    driver.poll_blocking("sizes").unwrap();
    assert_eq!(driver.state::<u64>("sizes", ""), Some(10));
}

#[test]
fn a_source_without_end_is_noticed() {
    let mut driver = Driver::new(&FEEDS);
    driver.send::<Archives>("x".into(), 1);
    let failed = driver.poll_blocking("endless").unwrap_err().to_string();
    assert!(failed.contains("answers `Next::Again` for ever"), "{failed}");
}

#[test]
fn outputs_of_an_extractor_go_on_to_transformers() {
    let mut driver = Driver::new(&FEEDS);
    driver.send::<Sources>("a".into(), source(2));
    driver.run_blocking().unwrap();
    assert!(driver.records::<Items>().is_empty(), "`run` polls nothing");
    driver.poll_blocking("poll").unwrap();
    driver.run_blocking().unwrap();
    let doubled: Vec<u64> = driver.read::<Doubled>().into_iter().map(|record| record.value).collect();
    assert_eq!(doubled, [0, 2]);
}

#[test]
fn of_each_config_the_last_record_has_to_decode() {
    let mut driver = Driver::new(&FEEDS).resource(Multiplier(1));
    driver.send_raw::<Archives>(Some(b"a"), Some(b"none"));
    let failed = driver.poll_blocking("scaled").unwrap_err().to_string();
    assert!(failed.contains("offset 0: the value can't be decoded"), "{failed}");
    driver.send::<Archives>("a".into(), 3);
    assert_eq!(driver.poll_blocking("scaled").unwrap(), 1);
    assert_eq!(driver.read::<Items>()[0].value, 3);
}

#[test]
fn a_config_topic_may_decide_about_what_does_not_decode() {
    let mut driver = Driver::new(&FEEDS).resource(Multiplier(1));
    driver.send::<Limits>("kept".into(), 7);
    for (key, value) in
        [(&b"kept"[..], &b"no number"[..]), (b"mended", b""), (b"left", b"?"), (b"\xff", b"5")]
    {
        driver.send_raw::<Limits>(Some(key), Some(value));
    }
    assert_eq!(driver.poll_blocking("repeat").unwrap(), 2);
    let mut items: Vec<_> = driver.read::<Items>().into_iter().map(|item| (item.key, item.value)).collect();
    items.sort();
    assert_eq!(items, [("kept".to_owned(), 7), ("mended".to_owned(), 1)]);
}
