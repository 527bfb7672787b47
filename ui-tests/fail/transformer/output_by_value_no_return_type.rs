//! A function as it would be without a framework: an output by value, and nothing returned.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, out: Out<Words>) {
    out.send(word.key, word.value);
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
