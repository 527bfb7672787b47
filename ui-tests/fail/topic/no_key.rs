//! A topic that does not say how keys are written; a stage uses the key.

use flechtwerk::prelude::*;

#[topic("keyless", value = Utf8)]
pub struct Keyless;

#[transformer(inputs = [Keyless])]
pub async fn count(word: Record<Keyless>, out: &mut Out<Keyless>) -> flechtwerk::Result {
    let key: String = word.key;
    out.send(key, word.value);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
