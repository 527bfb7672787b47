//! A lifetime parameter.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count<'a>(word: Record<Words>, out: &'a mut Out<Words>) -> flechtwerk::Result {
    out.send(word.key, word.value);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
