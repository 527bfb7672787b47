//! Timers for inputs that write their keys in two ways.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;
#[topic("numbers", key = BigEndian<u64>, value = Utf8)]
pub struct Numbers;

#[derive(Input)]
pub enum Any {
    Word(Record<Words>),
    Number(Record<Numbers>),
}

#[transformer(inputs = [Words, Numbers], on_timer = close)]
pub async fn count(any: Any, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (any, timers);
    Ok(())
}

async fn close(timer: Timer<Utf8>, timers: &mut Timers) -> flechtwerk::Result {
    let _ = (timer, timers);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
