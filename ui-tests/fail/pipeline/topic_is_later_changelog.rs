//! An input with the name of the changelog of a later stage.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("own-changelog", key = Utf8, value = Utf8)]
pub struct Log;

#[transformer(inputs = [Log])]
pub async fn other(word: Record<Log>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

#[transformer(inputs = [Words], state = u64, application_id = "own")]
pub async fn count(word: Record<Words>, _state: &mut State<u64>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [other, count]);

fn main() {}
