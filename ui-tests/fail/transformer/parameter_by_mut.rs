//! A parameter that nobody can provide, by `&mut`.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, buffer: &mut Vec<u8>) -> flechtwerk::Result {
    let _ = (word, buffer);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
