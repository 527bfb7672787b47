//! A resource by value.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct Http;

#[resource]
pub async fn http() -> flechtwerk::Result<Http> {
    Ok(Http)
}

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, http: Res<Http>) -> flechtwerk::Result {
    let _ = (word, http);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count], resources = [http]);

fn main() {}
