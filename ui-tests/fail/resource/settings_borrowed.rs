//! Settings that borrow what they hold.

use flechtwerk::prelude::*;
use serde::Deserialize;

pub struct Http;

#[derive(Deserialize)]
pub struct Address<'a> {
    pub url: &'a str,
}

#[resource]
pub async fn http(address: Address<'static>) -> flechtwerk::Result<Http> {
    let _ = address.url;
    Ok(Http)
}

fn main() {}
