//! A function that returns an option.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>) -> Option<()> {
    let _ = word;
    Some(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
