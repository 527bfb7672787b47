//! Resources that need each other.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct One;
pub struct Two;
pub struct Three;

#[resource]
pub async fn one(three: &Res<Three>) -> flechtwerk::Result<One> {
    let _ = three;
    Ok(One)
}

#[resource]
pub async fn two(one: &Res<One>) -> flechtwerk::Result<Two> {
    let _ = one;
    Ok(Two)
}

#[resource]
pub async fn three(two: &Res<Two>) -> flechtwerk::Result<Three> {
    let _ = two;
    Ok(Three)
}

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, two: &Res<Two>) -> flechtwerk::Result {
    let _ = (word, two);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count], resources = [one, two, three]);

fn main() {}
