//! Configs whose keys may be null.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[topic("loose", key = Nullable<Utf8>, value = Utf8)]
pub struct Loose;

#[extractor(config = Loose, poll_interval = "30s")]
pub async fn poll(source: &Record<Loose>) -> flechtwerk::Result<Next> {
    let _ = source;
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
