//! A lock that is held across an await.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

static SEEN: std::sync::Mutex<usize> = std::sync::Mutex::new(0);

async fn tick() {}

#[transformer(inputs = [Words])]
pub async fn count(word: Record<Words>) -> flechtwerk::Result {
    let mut seen = SEEN.lock().unwrap();
    tick().await;
    *seen += word.value.len();
    Ok(())
}

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
