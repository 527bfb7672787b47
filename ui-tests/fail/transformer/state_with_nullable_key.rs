//! State by a key that may be null.

use flechtwerk::prelude::*;

#[topic("unkeyed", key = Nullable<Utf8>, value = Utf8)]
pub struct Unkeyed;

#[transformer(inputs = [Unkeyed], state = u64)]
pub async fn count(word: Record<Unkeyed>, state: &mut State<u64>) -> flechtwerk::Result {
    let _ = (word, state);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
