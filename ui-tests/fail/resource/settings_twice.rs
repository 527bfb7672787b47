//! Two types of settings.

use flechtwerk::prelude::*;
use serde::Deserialize;

pub struct Http;

#[derive(Deserialize)]
pub struct Address {
    pub url: String,
}

#[derive(Deserialize)]
pub struct Limits {
    pub rate: f64,
}

#[resource]
pub async fn http(address: Address, limits: Limits) -> flechtwerk::Result<Http> {
    let _ = (address.url, limits.rate);
    Ok(Http)
}

fn main() {}
