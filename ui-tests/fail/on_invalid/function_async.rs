//! An async function.

use flechtwerk::invalid::{Answer, Invalid};
use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

async fn decide(_: &Invalid<'_>) -> Answer {
    Answer::Skip
}

#[transformer(inputs = [Words], on_invalid = decide)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
