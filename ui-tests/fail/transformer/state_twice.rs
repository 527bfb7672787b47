//! Two states.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words], state = u64)]
pub async fn count(word: Record<Words>, one: &mut State<u64>, two: &mut State<u64>) -> flechtwerk::Result {
    let _ = (word, one, two);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
