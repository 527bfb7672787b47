//! A type of another crate.

use flechtwerk::prelude::*;

#[resource]
pub async fn greeting() -> flechtwerk::Result<String> {
    Ok("hello".into())
}

fn main() {}
