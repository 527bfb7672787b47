//! Another resource by value.

use flechtwerk::prelude::*;

pub struct Http;
pub struct Cache;

#[resource]
pub async fn cache() -> flechtwerk::Result<Cache> {
    Ok(Cache)
}

#[resource]
pub async fn http(cache: Res<Cache>) -> flechtwerk::Result<Http> {
    let _ = cache;
    Ok(Http)
}

fn main() {}
