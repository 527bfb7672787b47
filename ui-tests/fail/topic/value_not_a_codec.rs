//! A Rust type where a codec belongs, in a topic that is used.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("typed", key = Utf8, value = u64)]
pub struct Typed;

#[transformer(inputs = [Typed])]
pub async fn count(word: Record<Typed>, out: &mut Out<Words>) -> flechtwerk::Result {
    let _ = word.value;
    out.send(word.key, String::new());
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
