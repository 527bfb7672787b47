//! Two resources whose settings have one name.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub struct Http;
pub struct Proxy;

#[resource]
pub async fn http() -> flechtwerk::Result<Http> {
    Ok(Http)
}

#[resource(name = "http")]
pub async fn proxy() -> flechtwerk::Result<Proxy> {
    Ok(Proxy)
}

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>, http: &Res<Http>, proxy: &Res<Proxy>) -> flechtwerk::Result {
    let _ = (word, http, proxy);
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count], resources = [http, proxy]);

fn main() {}
