//! A key function that takes the input by value.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

fn by_value(word: Record<Words>) -> String {
    word.value
}

#[transformer(inputs = [Words], key = by_value)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
