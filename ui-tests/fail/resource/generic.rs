//! A generic function.

use flechtwerk::prelude::*;

pub struct Http;

#[resource]
pub async fn http<T: Send>() -> flechtwerk::Result<Http> {
    Ok(Http)
}

fn main() {}
