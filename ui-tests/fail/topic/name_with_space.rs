//! A character that Kafka does not allow.

use flechtwerk::prelude::*;

#[topic("wor ds", key = Utf8, value = Utf8)]
pub struct Spaced;

#[transformer(inputs = [Spaced])]
pub async fn count(word: Record<Spaced>) -> flechtwerk::Result {
    let _ = word.key;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
