//! State by keys that are written in two ways.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("numbered", key = BigEndian<u64>, value = Utf8)]
pub struct Numbered;

#[derive(Input)]
pub enum Any {
    Word(Record<Words>),
    Numbered(Record<Numbered>),
}

#[transformer(inputs = [Words, Numbered], state = u64)]
pub async fn count(any: Any, state: &mut State<u64>) -> flechtwerk::Result {
    let _ = (any, state);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
