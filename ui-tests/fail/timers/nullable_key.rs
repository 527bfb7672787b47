//! Timers for records whose key may be null.

use flechtwerk::prelude::*;

#[topic("words", key = Nullable<Utf8>, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words], on_timer = close)]
pub async fn count(word: Record<Words>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (word, timers);
    Ok(())
}

async fn close(timer: Timer<Nullable<Utf8>>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (timer, timers);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
