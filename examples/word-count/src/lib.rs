//! Counts words: one record in `words` is one word, and each makes one record in `counts`, the count so far.

use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

/// The word is the key; the value may be anything.
#[topic("words", key = Utf8, value = Utf8)]
pub struct Words;

/// How often a word was seen up to now.
#[topic("counts", key = Utf8, value = Json<u64>)]
pub struct Counts;

/// What is remembered of each word.
#[derive(State, Serialize, Deserialize, Default, Clone, Debug, PartialEq)]
pub struct Count {
    /// How often it was seen.
    pub n: u64,
}

/// Counts one word.
#[transformer(inputs = [Words], state = Count)]
pub async fn count(
    word: Record<Words>,
    state: &mut State<Count>,
    out: &mut Out<Counts>,
) -> flechtwerk::Result {
    let count = state.get_or_insert_default();
    count.n += 1;
    out.send(word.key, count.n);
    Ok(())
}

flechtwerk::pipeline!(
    /// The whole pipeline.
    pub WORD_COUNT = "word-count": [count]
);

#[cfg(test)]
mod tests {
    use flechtwerk::testing::Driver;

    use super::*;

    /// A stage is a function: a test calls it.
    #[tokio::test]
    async fn a_word_is_counted_on_from_its_state() -> flechtwerk::Result {
        let (mut state, mut out) = (State::new(Count { n: 41 }), Out::default());
        count(Record::new("weft".into(), String::new()), &mut state, &mut out).await?;
        assert_eq!(*state, Some(Count { n: 42 }));
        assert_eq!(out.sent(), [("weft".to_owned(), 42)]);
        Ok(())
    }

    /// The pipeline as a whole, with topics and partitions, in memory.
    #[test]
    fn each_word_has_a_count_of_its_own() -> Result<(), Box<dyn std::error::Error>> {
        let mut driver = Driver::new(&WORD_COUNT);
        for word in ["warp", "weft", "warp", "", "warp"] {
            driver.send::<Words>(word.to_owned(), "anything".into());
        }
        driver.run_blocking()?;

        let counts = |word: &str| -> Vec<u64> {
            let counts = driver.records::<Counts>().into_iter().filter(|record| record.key == word);
            counts.map(|record| record.value).collect()
        };
        assert_eq!(counts("warp"), [1, 2, 3]);
        assert_eq!(counts("weft"), [1]);
        assert_eq!(counts(""), [1], "an empty word is a word");
        assert_eq!(driver.state::<Count>("count", "warp"), Some(Count { n: 3 }));
        Ok(())
    }
}
