//! A codec that does not exist; rustc says so, and nothing else does.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("typed", key = Utf9, value = Utf8)]
pub struct Typed;

#[transformer(inputs = [Typed])]
pub async fn count(word: Record<Typed>, out: &mut Out<Words>) -> flechtwerk::Result {
    out.send(word.key, word.value);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
