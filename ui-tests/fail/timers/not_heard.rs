//! Timers are set, and nothing hears of them.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words], state = u64)]
pub async fn count(word: Record<Words>, state: &mut State<u64>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (word, state, timers);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
