//! The stages that are simulated: real ones, with outputs and states that tell what they were made of. A record that does not
//! decode is skipped.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

/// The first input.
#[topic("left", key = Utf8, value = Utf8)]
pub struct Left;

/// The second input.
#[topic("right", key = Utf8, value = Utf8)]
pub struct Right;

/// The output: `input:offset:operation:count`.
#[topic("seen", key = Utf8, value = Utf8)]
pub struct Outcome;

/// What is kept of a key.
#[derive(State, Serialize, Deserialize, Default)]
pub struct Seen {
    /// Records since the last deletion.
    pub n: u64,
    /// The record that wrote it.
    pub of: String,
}

/// Either input.
#[derive(Input)]
pub enum Side {
    /// Of the first.
    Left(Record<Left>),
    /// Of the second.
    Right(Record<Right>),
}

/// What a record does to the state of its key, by the first letter of its value.
fn take(input: u8, offset: i64, value: &str, state: &mut State<Seen>) -> String {
    let n = match value.as_bytes().first() {
        Some(b'd') => {
            state.clear();
            0
        }
        // A sum that goes back to what it was: the state is written and unchanged.
        Some(b'u') => {
            let n = state.as_ref().map_or(0, |seen| seen.n);
            if let Some(seen) = state.as_mut() {
                seen.n = n;
            }
            n
        }
        Some(b'n') => state.as_ref().map_or(0, |seen| seen.n),
        _ => {
            let seen = state.get_or_insert_default();
            seen.n += 1;
            seen.of = format!("{input}:{offset}");
            seen.n
        }
    };
    format!("{input}:{offset}:{value}:{n}")
}

/// One input, with state.
#[transformer(inputs = [Left], state = Seen, on_invalid = flechtwerk::invalid::skip)]
pub async fn single(
    record: Record<Left>,
    state: &mut State<Seen>,
    out: &mut Out<Outcome>,
) -> flechtwerk::Result {
    let value = take(0, record.offset, &record.value, state);
    out.send(record.key, value);
    Ok(())
}

/// Two inputs, with state.
#[transformer(inputs = [Left, Right], state = Seen, on_invalid = flechtwerk::invalid::skip)]
pub async fn double(record: Side, state: &mut State<Seen>, out: &mut Out<Outcome>) -> flechtwerk::Result {
    let (key, value) = match record {
        Side::Left(record) => {
            let value = take(0, record.offset, &record.value, state);
            (record.key, value)
        }
        Side::Right(record) => {
            let value = take(1, record.offset, &record.value, state);
            (record.key, value)
        }
    };
    out.send(key, value);
    Ok(())
}

flechtwerk::pipeline!(
    /// One input.
    pub SINGLE = "sim": [single]
);
flechtwerk::pipeline!(
    /// Two inputs.
    pub DOUBLE = "sim": [double]
);
