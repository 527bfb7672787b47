//! Extractors whose configs say what they do.

use std::time::Duration;

use flechtwerk::invalid::{Answer, Invalid};
use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::stages_state::wait;

/// What to fetch, by name.
#[topic("feeds", key = Utf8, value = Utf8)]
pub struct Feeds;

/// What was fetched: the feed and the item's number.
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

/// The place in a source.
#[derive(State, Serialize, Deserialize, Default, Clone)]
pub struct Cursor {
    next: u64,
    /// Makes it large.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    padding: String,
}

/// Items of a page.
const PAGE: u64 = 10;

/// The numbers of the next items.
async fn ask(address: &str, name: &str, cursor: u64) -> flechtwerk::Result<Vec<u64>> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(format!("{name} {cursor} {PAGE}\n").as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await?;
    if !line.ends_with('\n') {
        return Err("the source broke off".into());
    }
    Ok(line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

/// Sends the next page of a source, and moves the cursor behind it.
async fn page(
    address: &str,
    name: &str,
    cursor: &mut State<Cursor>,
    out: &mut Out<Items>,
) -> flechtwerk::Result<Next> {
    let items = ask(address, name, cursor.as_ref().map_or(0, |cursor| cursor.next)).await?;
    let Some(last) = items.last() else { return Ok(Next::Idle) };
    cursor.get_or_insert_default().next = last + 1;
    items.iter().for_each(|item| out.send(name.to_owned(), item.to_string()));
    Ok(if items.len() as u64 == PAGE { Next::Again } else { Next::Idle })
}

fn is_off(feed: &Record<Feeds>) -> bool {
    feed.value == "off"
}

/// Does what the config says: `source:ADDRESS` fetches from there, `off` is suspended, `error`, `panic`, `hang`, `block`,
/// `again` and `same` do what they say, `cursor:BYTES` and `message:BYTES` make large ones, `wait:FILE` waits for a file.
#[extractor(config = Feeds, state = Cursor, poll_interval = "200ms", suspended = is_off)]
pub async fn fetch(
    feed: &Record<Feeds>,
    cursor: &mut State<Cursor>,
    out: &mut Out<Items>,
) -> flechtwerk::Result<Next> {
    let (command, argument) = feed.value.split_once(':').unwrap_or((&feed.value, ""));
    match command {
        "source" => return page(argument, &feed.key, cursor, out).await,
        "error" => return Err(std::io::Error::other("asked for an error").into()),
        "panic" => panic!("asked for a panic"),
        "hang" => std::future::pending::<()>().await,
        "block" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        "again" => return Ok(Next::Again),
        "same" => {
            out.send(feed.key.clone(), "same".into());
            return Ok(Next::Again);
        }
        "cursor" => cursor.get_or_insert_default().padding = noise(argument.parse()?),
        "message" => out.send(feed.key.clone(), noise(argument.parse()?)),
        "wait" => {
            wait(argument).await?;
            out.send(feed.key.clone(), "waited".into());
            return Ok(Next::After(Duration::from_secs(3600)));
        }
        other => return Err(format!("no such command: {other}").into()),
    }
    Ok(Next::Idle)
}

/// Text that no compression makes small.
fn noise(bytes: usize) -> String {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        char::from(b'!' + ((state >> 33) % 90) as u8)
    };
    (0..bytes).map(|_| next()).collect()
}

/// Has no config: fetches from the source that the environment names.
#[extractor(state = Cursor, poll_interval = "100ms")]
pub async fn pulse(cursor: &mut State<Cursor>, out: &mut Out<Items>) -> flechtwerk::Result<Next> {
    page(&std::env::var("RIG_SOURCE")?, "pulse", cursor, out).await
}

/// Feeds that some write wrongly.
#[topic("odd-feeds", key = Utf8, value = Utf8, on_invalid = mend)]
pub struct OddFeeds;

/// Text behind a byte that belongs to no text is taken; other records are left out.
fn mend(record: &Invalid<'_>) -> Answer {
    let Some(value) = record.value_of::<OddFeeds>() else { return Answer::Skip };
    match value.bytes().and_then(|bytes| std::str::from_utf8(bytes.get(1..)?).ok()) {
        Some(text) if !text.is_empty() => value.instead(text.to_owned()),
        _ => Answer::Skip,
    }
}

/// Fetches from the source whose address a config says.
#[extractor(config = OddFeeds, state = Cursor, poll_interval = "100ms")]
pub async fn fetch_odd(
    feed: &Record<OddFeeds>,
    cursor: &mut State<Cursor>,
    out: &mut Out<Items>,
) -> flechtwerk::Result<Next> {
    page(&feed.value, &feed.key, cursor, out).await
}

/// Has no cursor: sends what the config says, again and again.
#[extractor(config = Feeds, poll_interval = "50ms")]
pub async fn repeat(feed: &Record<Feeds>, out: &mut Out<Items>) -> flechtwerk::Result<Next> {
    out.send(feed.key.clone(), feed.value.clone());
    Ok(Next::Idle)
}
