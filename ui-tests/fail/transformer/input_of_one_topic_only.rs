//! Two inputs, but a parameter for one.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[transformer(inputs = [Words, Items])]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
