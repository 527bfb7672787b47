//! A function that makes nothing.

use flechtwerk::prelude::*;

pub struct Http;

#[resource]
pub async fn http() {
    let _ = Http;
}

fn main() {}
