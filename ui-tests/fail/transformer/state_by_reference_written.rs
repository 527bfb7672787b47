//! A state by a reference that can't be written through; the body that writes is no second error.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(State, Serialize, Deserialize, Default)]
pub struct Count {
    n: u64,
}

#[transformer(inputs = [Words], state = Count)]
pub async fn count(word: &Record<Words>, state: &State<Count>) -> flechtwerk::Result {
    state.get_or_insert_default().n += word.value.len() as u64;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
