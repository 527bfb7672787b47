//! Another state in the attribute than in the signature.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(State, Serialize, Deserialize, Default)]
pub struct Count {
    n: u64,
}

#[transformer(inputs = [Words], state = u64)]
pub async fn count(word: Record<Words>, state: &mut State<Count>) -> flechtwerk::Result {
    let _ = (word, state);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
