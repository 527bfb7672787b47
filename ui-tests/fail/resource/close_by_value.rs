//! A closing function that takes the resource away from the stages.

use flechtwerk::prelude::*;

pub struct Http;

async fn close(http: Http) -> flechtwerk::Result {
    let _ = http;
    Ok(())
}

#[resource(close = close)]
pub async fn http() -> flechtwerk::Result<Http> {
    Ok(Http)
}

fn main() {}
