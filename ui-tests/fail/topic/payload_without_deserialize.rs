//! JSON of a type that can be written only, in a topic that is used.

use flechtwerk::prelude::*;
use serde::Serialize;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

#[derive(Serialize)]
pub struct Payload {
    n: u64,
}

#[topic("payloads", key = Utf8, value = Json<Payload>)]
pub struct Payloads;

#[transformer(inputs = [Payloads])]
pub async fn count(payload: Record<Payloads>, out: &mut Out<Words>) -> flechtwerk::Result {
    out.send(payload.key, payload.value.n.to_string());
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
