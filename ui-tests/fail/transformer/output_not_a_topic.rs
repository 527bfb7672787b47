//! An output to what is no topic; the body sends to it.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct Text;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, out: &mut Out<Text>) -> flechtwerk::Result {
    out.send(word.key, word.value);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
