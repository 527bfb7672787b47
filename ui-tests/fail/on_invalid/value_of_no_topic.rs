//! Another value for something that is no topic.

use flechtwerk::invalid::{Answer, Invalid};
use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

fn decide(record: &Invalid<'_>) -> Answer {
    match record.value_of::<String>() {
        Some(_) => Answer::Skip,
        None => Answer::Crash,
    }
}

#[transformer(inputs = [Words], on_invalid = decide)]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
