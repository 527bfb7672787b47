//! A parameter that nobody can provide, by value.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, limit: u32) -> flechtwerk::Result {
    let _ = (word, limit);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
