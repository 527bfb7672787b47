//! A `suspended` for records of another topic.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

fn off(item: &Record<Items>) -> bool {
    item.value.is_empty()
}

#[extractor(config = Sources, state = u64, poll_interval = "30s", suspended = off)]
pub async fn poll(source: &Record<Sources>, cursor: &mut State<u64>) -> flechtwerk::Result<Next> {
    let _ = (source, cursor);
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
