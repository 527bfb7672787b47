//! A state in the attribute that no parameter takes.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(State, Serialize, Deserialize, Default)]
pub struct Count {
    n: u64,
}

#[transformer(inputs = [Words], state = Count)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
