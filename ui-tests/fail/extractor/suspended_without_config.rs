//! A function of configs where there are none.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

fn off(source: &Record<Sources>) -> bool {
    source.value.is_empty()
}

#[extractor(state = u64, poll_interval = "30s", suspended = off)]
pub async fn poll(cursor: &mut State<u64>) -> flechtwerk::Result<Next> {
    let _ = cursor;
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
