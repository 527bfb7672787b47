//! An argument that there is not.

use flechtwerk::prelude::*;

pub struct Http;

#[resource(closes = close)]
pub async fn http() -> flechtwerk::Result<Http> {
    Ok(Http)
}

fn main() {}
