//! The input behind an output.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(out: &mut Out<Words>, word: Record<Words>) -> flechtwerk::Result {
    out.send(word.key, word.value);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
