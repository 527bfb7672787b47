//! Two parameters for timers.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words], on_timer = close)]
pub async fn count(word: Record<Words>, timers: &mut Timers, others: &mut Timers) -> flechtwerk::Result {
    let _ = (word, timers, others);
    Ok(())
}

async fn close(timer: Timer<Utf8>, timers: &mut Timers, others: &mut Timers) -> flechtwerk::Result {
    let _ = (timer, timers, others);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
