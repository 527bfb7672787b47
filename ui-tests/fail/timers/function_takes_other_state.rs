//! A function for timers with another state.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words], state = u64, on_timer = close)]
pub async fn count(word: Record<Words>, state: &mut State<u64>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (word, state, timers);
    Ok(())
}

async fn close(timer: Timer<Utf8>, state: &mut State<u32>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (timer, state, timers);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
