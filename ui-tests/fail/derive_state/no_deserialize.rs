//! A state that can be written only.

use flechtwerk::prelude::*;
use serde::Serialize;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(State, Serialize, Default)]
pub struct Count {
    n: u64,
}

#[transformer(inputs = [Words], state = Count)]
pub async fn count(word: Record<Words>, state: &mut State<Count>) -> flechtwerk::Result {
    state.get_or_insert_default().n += word.value.len() as u64;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
