//! Dead letters into a topic that the stage reads itself.

use flechtwerk::invalid;
use flechtwerk::prelude::*;

#[topic("raw", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct Raw;

#[transformer(inputs = [Raw], on_invalid = invalid::dead_letter, dead_letters = Raw)]
pub async fn count(raw: Record<Raw>) -> flechtwerk::Result {
    let _ = raw;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
