//! An input that is no topic.

use flechtwerk::prelude::*;

pub struct Text;

#[transformer(inputs = [Text])]
pub async fn count(word: Record<Text>) -> flechtwerk::Result {
    let _ = word.key;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
