//! A state of a type from elsewhere.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words], state = Vec<String>)]
pub async fn count(word: Record<Words>, state: &mut State<Vec<String>>) -> flechtwerk::Result {
    state.get_or_insert_default().push(word.value);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
