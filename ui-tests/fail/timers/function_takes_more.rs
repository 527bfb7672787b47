//! A function for timers with a parameter that the stage has not.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;
#[topic("counts", key = Utf8, value = Json<u64>)]
pub struct Counts;

#[transformer(inputs = [Words], state = u64, on_timer = close)]
pub async fn count(word: Record<Words>, state: &mut State<u64>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (word, state, timers);
    Ok(())
}

async fn close(
    timer: Timer<Utf8>,
    state: &mut State<u64>,
    timers: &mut Timers,
    out: &mut Out<Counts>,
) -> flechtwerk::Result {
    let _ = (timer, state, timers, out);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
