//! A config, and no parameter at all.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[extractor(config = Sources, poll_interval = "30s")]
pub async fn poll() -> flechtwerk::Result<Next> {
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
