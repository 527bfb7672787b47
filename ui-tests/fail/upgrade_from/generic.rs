//! A generic state.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(State, Serialize, Deserialize)]
pub struct CountV1 {
    n: u8,
}

#[derive(State, Serialize, Deserialize)]
#[state(version = 2, upgrade_from(1 = CountV1, with = upgrade))]
pub struct Count<N> {
    n: N,
}

fn upgrade(old: CountV1) -> Count<u64> {
    Count { n: old.n.into() }
}

#[transformer(inputs = [Words], state = Count<u64>)]
pub async fn count(word: Record<Words>, state: &mut State<Count<u64>>) -> flechtwerk::Result {
    let _ = (word, state);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
