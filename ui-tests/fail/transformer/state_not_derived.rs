//! A state without `derive(State)`; the body uses it.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(Serialize, Deserialize, Default)]
pub struct Plain {
    n: u64,
}

#[transformer(inputs = [Words], state = Plain)]
pub async fn count(word: Record<Words>, state: &mut State<Plain>) -> flechtwerk::Result {
    state.get_or_insert_default().n += word.value.len() as u64;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
