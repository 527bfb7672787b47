//! A function that returns nothing.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>) {
    let _ = word;
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
