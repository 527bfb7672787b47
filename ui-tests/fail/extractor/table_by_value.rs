//! A table by value.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[topic("names", key = Utf8, value = Utf8)]
pub struct Names;

#[extractor(config = Sources, poll_interval = "30s")]
pub async fn poll(source: &Record<Sources>, names: Table<Names>) -> flechtwerk::Result<Next> {
    let _ = (source, names);
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
