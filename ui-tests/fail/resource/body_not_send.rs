//! A future that holds something which is not `Send` across an await.

use flechtwerk::prelude::*;
use std::rc::Rc;

pub struct Http;

async fn connect() {}

#[resource]
pub async fn http() -> flechtwerk::Result<Http> {
    let url = Rc::new("localhost");
    connect().await;
    let _ = url;
    Ok(Http)
}

fn main() {}
