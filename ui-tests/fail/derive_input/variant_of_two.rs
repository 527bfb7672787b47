//! A variant that holds two records.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(Input)]
pub enum Any {
    Words(Record<Words>, Record<Words>),
}

#[transformer(inputs = [Words])]
pub async fn count(any: Any) -> flechtwerk::Result {
    let _ = any;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
