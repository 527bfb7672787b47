//! Timers of an extractor.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[extractor(config = Words, state = u64, poll_interval = "30s")]
pub async fn count(word: &Record<Words>, state: &mut State<u64>, timers: &mut Timers) -> flechtwerk::Result<Next> {
    let _ = (word, state, timers);
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
