//! Three mistakes in one attribute and one in the signature, reported together.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [], stat = Count, order = random)]
pub fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
