//! A variant of a topic that does not exist; rustc says so, and nothing else does.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(Input)]
pub enum Any {
    Word(Record<Wrods>),
}

#[transformer(inputs = [Words])]
pub async fn count(any: Any) -> flechtwerk::Result {
    let _ = any;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
