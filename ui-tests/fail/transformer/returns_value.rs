//! A function that returns its result instead of sending it.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>) -> flechtwerk::Result<usize> {
    Ok(word.value.len())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
