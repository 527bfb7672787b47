//! A resource that can not be shared.

use flechtwerk::prelude::*;
use std::rc::Rc;

pub struct Http {
    pub url: Rc<str>,
}

#[resource]
pub async fn http() -> flechtwerk::Result<Http> {
    Ok(Http { url: "localhost".into() })
}

fn main() {}
