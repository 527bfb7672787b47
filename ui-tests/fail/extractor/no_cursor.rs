//! Neither a config nor a cursor.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[extractor(poll_interval = "30s")]
pub async fn poll(out: &mut Out<Items>) -> flechtwerk::Result<Next> {
    let _ = out;
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
