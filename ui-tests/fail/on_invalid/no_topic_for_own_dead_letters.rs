//! A function of one's own that makes dead letters, and no topic for them.

use flechtwerk::invalid::{self, Invalid};
use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

fn decide(_: &Invalid<'_>) -> invalid::DeadLetter {
    invalid::DeadLetter
}

#[transformer(inputs = [Words], on_invalid = decide)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
