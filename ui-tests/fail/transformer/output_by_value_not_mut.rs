//! An output by value that is not `mut`: the body is no second error.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, out: Out<Words>) -> flechtwerk::Result {
    out.send(word.key, word.value);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
