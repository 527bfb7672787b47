//! The result of a transformer.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[extractor(config = Sources, state = u64, poll_interval = "30s")]
pub async fn poll(source: &Record<Sources>, cursor: &mut State<u64>) -> flechtwerk::Result {
    let _ = (source, cursor);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
