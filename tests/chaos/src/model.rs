//! What one task ought to have written, by a plain sequential model of its stage, and what it has, in the same form.

use std::collections::BTreeMap;

use flechtwerk_checkers::batches::{Fate, Fated};
use flechtwerk_checkers::outputs::Output;
use flechtwerk_checkers::state::Entries;
use flechtwerk_checkers::tiling::{OffsetRecord, Transaction};
use flechtwerk_checkers::whole::Effect;
use flechtwerk_checkers::{Partition, Violation, tiling, whole};

use crate::feed::{Input, Made};
use crate::names::Stage;

/// A task and where it reads.
pub(crate) struct TaskLogs<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) number: i32,
    pub(crate) input: Partition,
    /// The name of its last transaction.
    pub(crate) stamp: String,
}

impl TaskLogs<'_> {
    pub(crate) fn start(&self) -> BTreeMap<Partition, i64> {
        BTreeMap::from([(self.input.clone(), 0)])
    }

    /// The last transaction alone.
    pub(crate) fn last(&self, offset: i64, stamp: &str) -> Option<Transaction> {
        let record = OffsetRecord {
            partition: self.input.clone(),
            offset,
            metadata: stamp.to_owned(),
            producer: None,
        };
        tiling::transactions(&[record], self.number).0.pop()
    }

    /// I2 of the outputs.
    pub(crate) fn whole(
        &self,
        chain: &[Transaction],
        inputs: &BTreeMap<i64, Input>,
        place: &Partition,
        made: &[Fated<Made>],
        letters: &[(Partition, Fated<Made>)],
    ) -> Vec<Violation> {
        let effect = |place: &Partition, one: &Fated<Made>| Effect {
            at: place.clone(),
            offset: one.offset,
            input: (Partition::new(&self.input.topic, one.record.at.0), one.record.at.1),
            fate: one.fate,
        };
        let effects = made.iter().map(|one| effect(place, one));
        let effects: Vec<Effect> =
            effects.chain(letters.iter().map(|(place, one)| effect(place, one))).collect();
        let expected = inputs.keys().map(|offset| ((self.input.clone(), *offset), 1)).collect();
        whole::check(chain, &self.start(), &effects, &expected)
    }

    /// I3 and I4: the outputs that the stage's function gives, called once for each record in order, and the states that it leaves.
    pub(crate) fn model(
        &self,
        inputs: &BTreeMap<i64, Input>,
        place: &Partition,
        rejected: &str,
    ) -> (Vec<Output>, Entries) {
        let mut counts: BTreeMap<&[u8], (u64, i64)> = BTreeMap::new();
        let mut wanted = Vec::with_capacity(inputs.len());
        for (offset, input) in inputs {
            let key = input.key.as_deref().unwrap_or_default();
            let at = (self.number, *offset);
            if !input.is_valid() {
                let at_rejected = Partition::new(rejected, self.number);
                wanted.push(output(&at_rejected, key, input.value.as_deref(), input.seq.as_deref(), at));
                continue;
            }
            if self.stage.changelog.is_none() {
                wanted.push(output(place, key, input.value.as_deref(), input.seq.as_deref(), at));
                continue;
            }
            let n = match input.value {
                None => {
                    counts.remove(key);
                    0
                }
                Some(_) => {
                    let count = counts.entry(key).or_default();
                    *count = (count.0 + 1, *offset);
                    count.0
                }
            };
            let value = n.to_string();
            wanted.push(output(place, key, Some(value.as_bytes()), input.seq.as_deref(), at));
        }
        let states = counts.into_iter().map(|(key, (n, offset))| {
            let mut full = vec![0];
            full.extend_from_slice(key);
            (full, state_text(n, &format!("{}:{offset}", self.number)))
        });
        (wanted, states.collect())
    }

    /// The outputs that are there, as the model writes them.
    pub(crate) fn seen(
        &self,
        place: &Partition,
        made: &[Fated<Made>],
        letters: &[(Partition, Fated<Made>)],
        rejected: &str,
    ) -> Vec<Output> {
        let kept = |one: &&Fated<Made>| one.fate == Fate::Committed;
        let one = |place: &Partition, made: &Made| {
            let key = made.key.as_deref().unwrap_or_default();
            output(place, key, made.value.as_deref(), made.seq.as_deref(), made.at)
        };
        let at_rejected = Partition::new(rejected, self.number);
        let letters = letters.iter().map(|(_, letter)| letter).filter(kept);
        // Those of a key without a partition of its own lie in several: in the order of the input.
        let mut letters: Vec<&Made> = letters.map(|letter| &letter.record).collect();
        letters.sort_by_key(|letter| letter.at);
        let mut seen: Vec<Output> = made.iter().filter(kept).map(|made| one(place, &made.record)).collect();
        seen.extend(letters.into_iter().map(|letter| one(&at_rejected, letter)));
        seen
    }
}

fn output(at: &Partition, key: &[u8], value: Option<&[u8]>, seq: Option<&[u8]>, of: (i32, i64)) -> Output {
    let text = |bytes: Option<&[u8]>| {
        bytes.map_or("null".into(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let value = format!("{} number {} of {}:{}", text(value), text(seq), of.0, of.1);
    Output { at: at.clone(), key: key.to_vec(), value: value.into_bytes() }
}

pub(crate) fn state_text(n: u64, at: &str) -> Vec<u8> {
    format!("{n} of {at}").into_bytes()
}

#[cfg(test)]
mod tests {
    use flechtwerk_checkers::outputs;

    use super::*;

    fn task(stage: &Stage) -> TaskLogs<'_> {
        TaskLogs { stage, number: 3, input: Partition::new("in", 3), stamp: String::new() }
    }

    fn stage(changelog: Option<&str>) -> Stage {
        Stage {
            name: "s",
            group: "g".into(),
            input: "in".into(),
            output: "out".into(),
            changelog: changelog.map(str::to_owned),
        }
    }

    #[test]
    fn the_model_counts_forgets_and_rejects() {
        let input = |value: Option<&[u8]>| Input {
            key: Some(b"a".to_vec()),
            value: value.map(<[u8]>::to_vec),
            seq: Some(b"1".to_vec()),
        };
        let inputs = BTreeMap::from([
            (0, input(Some(b"x"))),
            (1, input(Some(b"x"))),
            (4, input(None)),
            (5, input(Some(b"x"))),
            (6, input(Some(b"\xff"))),
        ]);
        let counting = stage(Some("changelog"));
        let (wanted, states) = task(&counting).model(&inputs, &Partition::new("out", 3), "dead");
        let texts: Vec<String> =
            wanted.iter().map(|one| String::from_utf8_lossy(&one.value).into()).collect();
        assert_eq!(
            texts[..4],
            ["1 number 1 of 3:0", "2 number 1 of 3:1", "0 number 1 of 3:4", "1 number 1 of 3:5"]
        );
        assert_eq!(wanted[4].at, Partition::new("dead", 3));
        assert_eq!(states, Entries::from([(b"\0a".to_vec(), b"1 of 3:5".to_vec())]));
        let sifting = stage(None);
        let (wanted, states) = task(&sifting).model(&inputs, &Partition::new("out", 3), "dead");
        assert_eq!(String::from_utf8_lossy(&wanted[2].value), "null number 1 of 3:4");
        assert!(states.is_empty());
    }

    #[test]
    fn outputs_are_compared_with_the_model_and_aborted_ones_left_out() {
        let stage = stage(None);
        let task = task(&stage);
        let place = Partition::new("out", 3);
        let input = Input { key: Some(b"a".to_vec()), value: Some(b"x".to_vec()), seq: None };
        let (wanted, _) = task.model(&BTreeMap::from([(7, input)]), &place, "dead");
        let one = |fate, at| {
            let record =
                Made { key: Some(b"a".to_vec()), value: Some(b"x".to_vec()), seq: None, at, by: None };
            Fated { offset: 0, producer: None, fate, record }
        };
        let kinds = |made: &[Fated<Made>]| -> Vec<&str> {
            let seen = task.seen(&place, made, &[], "dead");
            outputs::check(&wanted, &seen).into_iter().map(|violation| violation.kind).collect()
        };
        assert!(kinds(&[one(Fate::Aborted, (3, 7)), one(Fate::Committed, (3, 7))]).is_empty());
        assert_eq!(kinds(&[one(Fate::Aborted, (3, 7))]), ["missing"]);
        assert_eq!(kinds(&[one(Fate::Committed, (3, 7)), one(Fate::Committed, (3, 8))]), ["unexpected"]);
    }
}
