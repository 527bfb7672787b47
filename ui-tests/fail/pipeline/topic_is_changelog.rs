//! An output with the name of a changelog.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("demo-count-changelog", key = Utf8, value = Utf8)]
pub struct Log;

#[transformer(inputs = [Words], state = u64)]
pub async fn count(word: Record<Words>, _state: &mut State<u64>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

#[transformer(inputs = [Words])]
pub async fn other(word: Record<Words>, _out: &mut Out<Log>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count, other]);

fn main() {}
