//! A timer set for a time span.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words], state = u64, on_timer = close)]
pub async fn count(word: Record<Words>, state: &mut State<u64>, timers: &mut Timers) -> flechtwerk::Result {
    timers.set("close", std::time::Duration::from_secs(30));
    let _ = (word, state);
    Ok(())
}

async fn close(timer: Timer<Utf8>, state: &mut State<u64>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (timer, state, timers);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
