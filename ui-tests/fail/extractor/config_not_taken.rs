//! An attribute with a config and a function without.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[extractor(config = Sources, state = u64, poll_interval = "30s")]
pub async fn poll(cursor: &mut State<u64>) -> flechtwerk::Result<Next> {
    let _ = cursor;
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
