//! Two stages of one name.

use flechtwerk::prelude::*;

#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

pub mod a {
    use super::*;

    #[transformer(inputs = [Words])]
    pub async fn count(word: Record<Words>) -> flechtwerk::Result {
        let _ = word;
        Ok(())
    }
}

pub mod b {
    use super::*;

    #[transformer(inputs = [Words])]
    pub async fn count(word: Record<Words>) -> flechtwerk::Result {
        let _ = word;
        Ok(())
    }
}

flechtwerk::pipeline!(pub DEMO = "demo": [a::count, b::count]);

fn main() {}
