//! An error type that is no error.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>) -> Result<(), u32> {
    let _ = word;
    Err(7)
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
