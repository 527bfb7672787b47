//! A resource that another one needs and the pipeline does not make.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct Http;
pub struct Cache;

#[resource]
pub async fn http() -> flechtwerk::Result<Http> {
    Ok(Http)
}

#[resource]
pub async fn cache(http: &Res<Http>) -> flechtwerk::Result<Cache> {
    let _ = http;
    Ok(Cache)
}

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, cache: &Res<Cache>) -> flechtwerk::Result {
    let _ = (word, cache);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count], resources = [cache]);

fn main() {}
