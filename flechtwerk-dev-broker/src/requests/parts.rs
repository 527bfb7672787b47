//! Answers that are put together part by part, and given up once they are too long: the same name over and over makes a small request,
//! and as in Kafka its answer tells of the same thing as often.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use kafka_protocol::protocol::Encodable;

use super::{Context, Outcome};

/// The parts of an answer, each of what its key names.
pub(super) struct Parts<K, T> {
    /// What is left of the longest answer.
    left: usize,
    version: i16,
    /// Those that there are, with their sizes: what is named again is copied.
    known: HashMap<K, (T, usize)>,
}

/// The answer would be longer than any that is sent.
pub(super) struct TooLong;

impl<K: Eq + Hash, T: Encodable + Clone> Parts<K, T> {
    pub(super) fn new(context: &Context) -> Parts<K, T> {
        Parts { left: context.shared.max_answer, version: context.version(), known: HashMap::new() }
    }

    /// The part for this key, if there is room for it.
    pub(super) fn part(&mut self, key: K, describe: impl FnOnce(&K) -> T) -> Result<T, TooLong> {
        let (part, size) = match self.known.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let part = describe(new.key());
                // One that can't be encoded is found when it is.
                let size = part.compute_size(self.version).unwrap_or_default();
                new.insert((part, size))
            }
        };
        self.left = self.left.checked_sub(*size).ok_or(TooLong)?;
        Ok(part.clone())
    }
}

impl<A> From<Result<A, TooLong>> for Outcome<A> {
    fn from(answer: Result<A, TooLong>) -> Outcome<A> {
        answer.map_or(Outcome::TooLong, Outcome::Answer)
    }
}
