//! Settings that can not be read.

use flechtwerk::prelude::*;

pub struct Http;

pub struct Address {
    pub url: String,
}

#[resource]
pub async fn http(address: Address) -> flechtwerk::Result<Http> {
    let _ = address.url;
    Ok(Http)
}

fn main() {}
