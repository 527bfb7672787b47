//! An upgrade, and no version of its own.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(State, Serialize, Deserialize)]
pub struct CountV1 {
    n: u8,
}

#[derive(State, Serialize, Deserialize)]
#[state(upgrade_from(1 = CountV1, with = upgrade))]
pub struct Count {
    n: u64,
}

fn upgrade(old: CountV1) -> Count {
    Count { n: old.n.into() }
}

#[transformer(inputs = [Words], state = Count)]
pub async fn count(word: Record<Words>, state: &mut State<Count>) -> flechtwerk::Result {
    let _ = (word, state);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
