//! A function that is not async.

use flechtwerk::prelude::*;

pub struct Http;

#[resource]
pub fn http() -> flechtwerk::Result<Http> {
    Ok(Http)
}

fn main() {}
