//! Stages whose user code does what the records say: state, order, time and failures.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use flechtwerk::BoxError;
use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

use crate::pipeline::{Joined, Profiles, Words};

/// A connection, as a key: its fields are not in the order of their names.
#[derive(Serialize, Deserialize)]
pub struct Route {
    to: String,
    from: String,
    stops: Vec<u32>,
}

/// Keyed by JSON.
#[topic("routes", key = Json<Route>, value = Utf8)]
pub struct Routes;

/// Floating point numbers, not all of which are JSON.
#[topic("ratios", key = Utf8, value = Json<f64>)]
pub struct Ratios;

/// Hexadecimal digits in the topic, bytes in the program.
pub struct Hex;

impl Codec for Hex {
    type Item = Vec<u8>;

    fn encode(item: &Vec<u8>, into: &mut Vec<u8>) -> Result<(), BoxError> {
        item.iter().try_for_each(|byte| write!(into, "{byte:02x}"))?;
        Ok(())
    }

    fn decode(bytes: &Bytes) -> Result<Vec<u8>, BoxError> {
        let text = std::str::from_utf8(bytes)?;
        if text.len() % 2 != 0 {
            return Err("an odd number of digits".into());
        }
        (0..text.len() / 2).map(|at| Ok(u8::from_str_radix(&text[2 * at..2 * at + 2], 16)?)).collect()
    }
}

/// Read and written by a codec of the tests' own.
#[topic("digits", key = Utf8, value = Hex)]
pub struct Digits;

/// The same, to write to.
#[topic("turned", key = Utf8, value = Hex)]
pub struct Turned;

/// What `tally` keeps.
#[derive(State, Serialize, Deserialize, Default, Clone)]
pub struct Sum {
    n: u64,
    /// Makes it large.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    padding: String,
}

/// Waits until somebody creates the file, and says by another one that it waits.
pub(crate) async fn wait(path: &str) -> std::io::Result<()> {
    std::fs::write(format!("{path}.arrived"), "")?;
    while !Path::new(path).exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Adds a byte to a file: what happens once for each call, whatever becomes of the batch.
fn leave_trace(path: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(b"x")
}

/// An error with a cause.
#[derive(Debug)]
struct Refused(std::io::Error);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the word was refused")
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// A program that was corrected does not mind what it is asked to fail at.
fn is_corrected() -> bool {
    std::env::var_os("RIG_CORRECTED").is_some()
}

/// Sums up what it is told: `delete` removes the state, `same` writes what is there, `grow:BYTES` makes it large and
/// sends nothing, `wait:FILE` waits for a file, `trace:FILE` leaves a trace in one, `fail:FILE` and `panic:FILE` do so
/// and fail, unless the program was corrected. All else, and these two then, adds one and sends the sum.
#[transformer(inputs = [Words], state = Sum)]
pub async fn tally(word: Record<Words>, state: &mut State<Sum>, out: &mut Out<Joined>) -> flechtwerk::Result {
    let (command, argument) = word.value.split_once(':').unwrap_or((&word.value, ""));
    match command {
        "delete" => {
            **state = None;
            return Ok(());
        }
        "same" => {
            let same = state.clone();
            **state = same;
            return Ok(());
        }
        "grow" => {
            state.get_or_insert_default().padding = "p".repeat(argument.parse()?);
            return Ok(());
        }
        "wait" => {
            wait(argument).await?;
            out.send(word.key, "waited".into());
            return Ok(());
        }
        "trace" => leave_trace(argument)?,
        "fail" | "panic" if !is_corrected() => {
            leave_trace(argument)?;
            if command == "panic" {
                panic!("it was asked for, too");
            }
            return Err(Refused(std::io::Error::other("it was asked for")).into());
        }
        _ => {}
    }
    let sum = state.get_or_insert_default();
    sum.n += 1;
    out.send(word.key, sum.n.to_string());
    Ok(())
}

/// Either side of a merge.
#[derive(Input)]
pub enum Either {
    /// Of the first input.
    Profile(Record<Profiles>),
    /// Of the second.
    Word(Record<Words>),
}

/// Sends every record on, marked with the input it came from; a word `wait:FILE` waits for a file.
#[transformer(inputs = [Profiles, Words])]
pub async fn merge(either: Either, out: &mut Out<Joined>) -> flechtwerk::Result {
    match either {
        Either::Profile(profile) => {
            out.send(profile.key, format!("p{}", profile.value.unwrap_or_default()));
        }
        Either::Word(word) => {
            if let Some(path) = word.value.strip_prefix("wait:") {
                wait(path).await?;
            } else {
                out.send(word.key, format!("w{}", word.value));
            }
        }
    }
    Ok(())
}

/// The same, merged by timestamp.
#[transformer(inputs = [Profiles, Words], order = timestamp)]
pub async fn merge_by_time(either: Either, out: &mut Out<Joined>) -> flechtwerk::Result {
    merge(either, out).await
}

/// Sends the value on, keyed by a connection from the key to the value.
#[transformer(inputs = [Words])]
pub async fn route(word: Record<Words>, out: &mut Out<Routes>) -> flechtwerk::Result {
    let route = Route { to: word.value.clone(), from: word.key, stops: vec![3, 1] };
    out.send(route, word.value);
    Ok(())
}

/// Sends the value as a number.
#[transformer(inputs = [Words])]
pub async fn ratio(word: Record<Words>, out: &mut Out<Ratios>) -> flechtwerk::Result {
    out.send(word.key, word.value.parse()?);
    Ok(())
}

/// Turns the bytes around.
#[transformer(inputs = [Digits])]
pub async fn turn(digits: Record<Digits>, out: &mut Out<Turned>) -> flechtwerk::Result {
    out.send(digits.key, digits.value.into_iter().rev().collect());
    Ok(())
}

/// Sends headers, timestamp, partition and offset of the input on as a value.
#[transformer(inputs = [Words])]
pub async fn describe(word: Record<Words>, out: &mut Out<Joined>) -> flechtwerk::Result {
    let headers: Vec<String> = word
        .headers
        .iter()
        .map(|header| {
            let value = header.value.as_ref().map_or("null".into(), |value| String::from_utf8_lossy(value));
            format!("{}={value}", header.name)
        })
        .collect();
    let time = word.timestamp.unwrap_or(-1);
    out.send(word.key, format!("{}/{}@{time} {}", word.partition, word.offset, headers.join(",")));
    Ok(())
}

/// Has an application id of its own.
#[transformer(inputs = [Words], state = Sum, application_id = "chosen")]
pub async fn named(word: Record<Words>, state: &mut State<Sum>, out: &mut Out<Joined>) -> flechtwerk::Result {
    tally(word, state, out).await
}
