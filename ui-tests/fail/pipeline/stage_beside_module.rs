//! A stage that is imported beside a module of its name: rustc knows only one of them.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

mod count {
    use super::*;

    #[transformer(inputs = [Words])]
    pub async fn count(word: Record<Words>) -> flechtwerk::Result {
        let _ = word;
        Ok(())
    }
}
use count::count;

flechtwerk::pipeline!(pub DEMO = "demo": [count]);

fn main() {}
