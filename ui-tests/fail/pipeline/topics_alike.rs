//! Two topics that differ in a dot only.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[topic("my.items", key = Utf8, value = Utf8)]
pub struct Dotted;
#[topic("my_items", key = Utf8, value = Utf8)]
pub struct Underscored;

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, _out: &mut Out<Dotted>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

#[transformer(inputs = [Words])]
pub async fn other(word: Record<Words>, _out: &mut Out<Underscored>) -> flechtwerk::Result {
    let _ = word;
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count, other]);

fn main() {}
