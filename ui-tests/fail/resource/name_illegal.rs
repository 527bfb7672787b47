//! A name that can not be that of a table in the settings.

use flechtwerk::prelude::*;

pub struct Http;

#[resource(name = "Http Client")]
pub async fn http() -> flechtwerk::Result<Http> {
    Ok(Http)
}

fn main() {}
