//! A function without parameters.

use flechtwerk::invalid::Answer;
use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

fn decide() -> Answer {
    Answer::Skip
}

#[transformer(inputs = [Words], on_invalid = decide)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
