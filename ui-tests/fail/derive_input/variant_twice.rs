//! Two variants of one topic.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(Input)]
pub enum Any {
    Word(Record<Words>),
    Same(Record<Words>),
}

#[transformer(inputs = [Words])]
pub async fn count(any: Any) -> flechtwerk::Result {
    let _ = any;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
