//! What the rig runs: two stages written as a user would write them, the second on the output of the first, so that it
//! reads a topic full of markers and aborted records.
//!
//! It is no example because the checks must know of each output what it was made of, and which call has made it. So each
//! output has the headers `at` (partition and offset of the input record) and `by` (a name that no other call has), and the
//! state remembers both.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use flechtwerk::invalid;
use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

/// The header that numbers the records of a key, from 1 on; its writer sets it.
pub const SEQ: &str = "seq";
/// The header that says which input record an output was made of: `PARTITION:OFFSET`.
pub const AT: &str = "at";
/// The header that names the call which has made an output.
pub const BY: &str = "by";

/// What comes in: a text counts, null forgets the key, and what is no text is invalid.
#[topic("events", key = Utf8, value = Nullable<Utf8>)]
pub struct Events;

/// What could not be read.
#[topic("rejected", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct Rejected;

/// The events that could.
#[topic("sifted", key = Utf8, value = Nullable<Utf8>)]
pub struct Sifted;

/// The count of a key up to an event; 0 when it is forgotten.
#[topic("tallies", key = Utf8, value = Json<u64>)]
pub struct Tallies;

/// What is remembered of a key.
#[derive(State, Serialize, Deserialize, Default, Clone, Debug, PartialEq)]
pub struct Tally {
    /// Events since it was last forgotten.
    pub n: u64,
    /// The last of them.
    pub at: String,
    /// The call that wrote this.
    pub by: String,
}

/// A name that no other call has, in this process or another.
fn call() -> String {
    static PROCESS: LazyLock<u64> = LazyLock::new(rand::random);
    static CALLS: AtomicU64 = AtomicU64::new(0);
    format!("{:016x}.{}", *PROCESS, CALLS.fetch_add(1, Ordering::Relaxed))
}

fn place<T: Topic>(record: &Record<T>) -> String {
    format!("{}:{}", record.partition, record.offset)
}

/// Lets through what can be read.
#[transformer(inputs = [Events], on_invalid = invalid::dead_letter, dead_letters = Rejected)]
pub async fn sift(event: Record<Events>, out: &mut Out<Sifted>) -> flechtwerk::Result {
    let seq = event.headers.get(SEQ).cloned().unwrap_or_default();
    let at = place(&event);
    let sifted = OutRecord::new(event.key, event.value).header(SEQ, seq).header(AT, at).header(BY, call());
    out.send_record(sifted);
    Ok(())
}

/// Counts the events of each key.
#[transformer(inputs = [Sifted], state = Tally)]
pub async fn tally(
    event: Record<Sifted>,
    state: &mut State<Tally>,
    out: &mut Out<Tallies>,
) -> flechtwerk::Result {
    let seq = event.headers.get(SEQ).cloned().unwrap_or_default();
    let (at, by) = (place(&event), call());
    let n = match event.value {
        None => {
            **state = None;
            0
        }
        Some(_) => {
            let tally = state.get_or_insert_default();
            *tally = Tally { n: tally.n + 1, at: at.clone(), by: by.clone() };
            tally.n
        }
    };
    out.send_record(OutRecord::new(event.key, n).header(SEQ, seq).header(AT, at).header(BY, by));
    Ok(())
}

flechtwerk::pipeline!(
    /// The pipeline under test.
    pub CHAOS = "chaos": [sift, tally]
);

#[cfg(test)]
mod tests {
    use flechtwerk::testing::Driver;

    use super::*;

    #[test]
    fn events_are_counted_forgotten_and_rejected() -> Result<(), Box<dyn std::error::Error>> {
        let mut driver = Driver::new(&CHAOS).partitions(1);
        for value in [Some("x"), Some("x"), None, Some("x")] {
            driver.send::<Events>("a".to_owned(), value.map(str::to_owned));
        }
        driver.send_raw::<Events>(Some(b"a"), Some(b"\xff"));
        driver.run_blocking()?;
        let tallies: Vec<u64> = driver.read::<Tallies>().into_iter().map(|one| one.value).collect();
        assert_eq!(tallies, [1, 2, 0, 1]);
        assert_eq!(driver.read::<Rejected>().len(), 1);
        Ok(())
    }
}
