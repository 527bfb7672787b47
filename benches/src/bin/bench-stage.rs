//! The contestants made with Flechtwerk, as a program of their own.
#![allow(missing_docs)]

use flechtwerk::prelude::*;
use flechtwerk_benches::timers as bench;
use serde::{Deserialize, Serialize};

// Counting needs no values, so they stay the bytes that they are: the loop does not look at them either.
#[topic("words", key = Utf8, value = Bytes)]
pub struct Words;

#[topic("counts", key = Utf8, value = Json<u64>)]
pub struct Counts;

#[derive(State, Serialize, Deserialize, Default, Clone)]
pub struct Count {
    n: u64,
}

/// What the hand-written loop does as well.
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

/// Costs what the runtime costs.
#[transformer(inputs = [Words])]
pub async fn nothing(_word: Record<Words>) -> flechtwerk::Result {
    Ok(())
}

/// Pages of a hundred messages, as many as the config says.
#[extractor(config = Words, state = u64, poll_interval = "1h")]
pub async fn fetch(
    config: &Record<Words>,
    cursor: &mut State<u64>,
    out: &mut Out<Counts>,
) -> flechtwerk::Result<Next> {
    let pages: u64 = std::str::from_utf8(&config.value)?.parse()?;
    let page = cursor.unwrap_or(0);
    if page == pages {
        return Ok(Next::Idle);
    }
    for message in 0..100 {
        out.send(config.key.clone(), page * 100 + message);
    }
    cursor.set(page + 1);
    Ok(Next::Again)
}

/// Counts and sends, or sets a timer that will do so: the first byte of the value says what.
#[transformer(inputs = [Words], state = Count, on_timer = reminded)]
pub async fn remind(
    word: Record<Words>,
    state: &mut State<Count>,
    timers: &mut Timers,
    out: &mut Out<Counts>,
) -> flechtwerk::Result {
    match word.value.first() {
        Some(&bench::SET) => timers.set("due", word.timestamp.unwrap_or_default() + bench::WAIT),
        Some(&bench::COUNT) => {
            let count = state.get_or_insert_default();
            count.n += 1;
            out.send(word.key, count.n);
        }
        _ => {}
    }
    Ok(())
}

async fn reminded(
    timer: Timer<Utf8>,
    state: &mut State<Count>,
    _: &mut Timers,
    out: &mut Out<Counts>,
) -> flechtwerk::Result {
    let count = state.get_or_insert_default();
    count.n += 1;
    out.send(timer.key, count.n);
    Ok(())
}

flechtwerk::pipeline!(pub BENCH = "bench": [count, nothing, fetch, remind]);
flechtwerk::main!(BENCH);
