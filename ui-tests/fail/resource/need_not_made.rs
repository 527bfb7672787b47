//! Another resource that no function makes.

use flechtwerk::prelude::*;

pub struct Http;
pub struct Cache;

#[resource]
pub async fn http(cache: &Res<Cache>) -> flechtwerk::Result<Http> {
    let _ = cache;
    Ok(Http)
}

fn main() {}
