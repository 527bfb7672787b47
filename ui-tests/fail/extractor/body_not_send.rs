//! A future that can not go to another thread.

use flechtwerk::prelude::*;

#[topic("sources", key = Utf8, value = Utf8)]
pub struct Sources;
#[topic("items", key = Utf8, value = Utf8)]
pub struct Items;

#[extractor(config = Sources, state = u64, poll_interval = "30s")]
pub async fn poll(source: &Record<Sources>, cursor: &mut State<u64>) -> flechtwerk::Result<Next> {
    let shared = std::rc::Rc::new((source, cursor));
    std::future::ready(()).await;
    drop(shared);
    Ok(Next::Idle)
}

flechtwerk::pipeline!(pub DEMO = "demo": [poll]);

fn main() {}
