//! An upgrade from the type itself.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(State, Serialize, Deserialize)]
#[state(version = 2, upgrade_from(1 = Count, with = upgrade))]
pub struct Count {
    n: u64,
}

fn upgrade(old: Count) -> Count {
    old
}

#[transformer(inputs = [Words], state = Count)]
pub async fn count(word: Record<Words>, state: &mut State<Count>) -> flechtwerk::Result {
    let _ = (word, state);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
