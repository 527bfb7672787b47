//! A closing function that does not exist.

use flechtwerk::prelude::*;

pub struct Http;

#[resource(close = close)]
pub async fn http() -> flechtwerk::Result<Http> {
    Ok(Http)
}

fn main() {}
