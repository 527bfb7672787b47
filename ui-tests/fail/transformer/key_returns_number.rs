//! A key function that does not return bytes.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

fn by_length(word: &Record<Words>) -> usize {
    word.value.len()
}

#[transformer(inputs = [Words], key = by_length)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
