//! An output by value.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[extractor(config = Sources, poll_interval = "30s")]
pub async fn poll(source: &Record<Sources>, out: Out<Items>) -> flechtwerk::Result<Next> {
    let _ = (source, out);
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
