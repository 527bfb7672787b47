//! Two functions that make one type.

use flechtwerk::prelude::*;

pub struct Http;

#[resource]
pub async fn http() -> flechtwerk::Result<Http> {
    Ok(Http)
}

#[resource]
pub async fn proxy() -> flechtwerk::Result<Http> {
    Ok(Http)
}

fn main() {}
