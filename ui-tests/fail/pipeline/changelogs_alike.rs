//! Two changelogs that differ in a dot only.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[transformer(inputs = [Words], state = u64, application_id = "my.app")]
pub async fn one(word: Record<Words>, _state: &mut State<u64>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

#[transformer(inputs = [Words], state = u64, application_id = "my_app")]
pub async fn two(word: Record<Words>, _state: &mut State<u64>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [one, two]);

fn main() {}
