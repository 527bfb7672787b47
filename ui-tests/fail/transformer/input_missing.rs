//! No input, only an output.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words])]
pub async fn count(out: &mut Out<Words>) -> flechtwerk::Result {
    let _ = out;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
