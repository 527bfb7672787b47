//! A topic that does not say how values are written; a stage uses the value.

use flechtwerk::prelude::*;

#[topic("hollow", key = Utf8)]
pub struct Hollow;

#[transformer(inputs = [Hollow])]
pub async fn count(word: Record<Hollow>, out: &mut Out<Hollow>) -> flechtwerk::Result {
    let length = word.value.len();
    out.send(word.key, length);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
