//! A function for timers that takes a record.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words], state = u64, on_timer = close)]
pub async fn count(word: Record<Words>, state: &mut State<u64>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (word, state, timers);
    Ok(())
}

async fn close(word: Record<Words>, state: &mut State<u64>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (word, state, timers);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
