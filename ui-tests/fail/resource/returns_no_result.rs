//! A function that can not fail.

use flechtwerk::prelude::*;

pub struct Http;

#[resource]
pub async fn http() -> Http {
    Http
}

fn main() {}
