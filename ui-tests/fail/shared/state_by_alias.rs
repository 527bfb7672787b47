//! A state by `&`, under another name.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

type Count = State<u64>;

#[transformer(inputs = [Words], key = key)]
pub async fn count(word: Record<Words>, count: &Count) -> flechtwerk::Result {
    let _ = (word, count);
    Ok(())
}

fn key(word: &Record<Words>) -> &str {
    &word.key
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
