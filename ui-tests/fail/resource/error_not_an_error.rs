//! An error that is none.

use flechtwerk::prelude::*;

pub struct Http;
pub struct Refused;

#[resource]
pub async fn http() -> Result<Http, Refused> {
    Err(Refused)
}

fn main() {}
