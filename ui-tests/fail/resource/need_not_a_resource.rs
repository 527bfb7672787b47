//! A reference to something else.

use flechtwerk::prelude::*;

pub struct Http;

#[resource]
pub async fn http(url: &String) -> flechtwerk::Result<Http> {
    let _ = url;
    Ok(Http)
}

fn main() {}
