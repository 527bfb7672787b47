//! From records on the brokers to what the checkers compare: inputs, outputs, changelog entries.

use anyhow::{Context, anyhow};
use flechtwerk::invalid::headers;
use flechtwerk_conformance::Record;

use crate::pipeline::{AT, BY, SEQ, Tally};
use crate::watch::{Call, call};

/// An input record.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// `None`: null.
    pub key: Option<Vec<u8>>,
    /// `None`: null.
    pub value: Option<Vec<u8>>,
    /// Its number for its key, where it has one.
    pub seq: Option<Vec<u8>>,
}

impl Input {
    /// True if the stages can read it.
    pub fn is_valid(&self) -> bool {
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
        self.key.as_deref().is_some_and(text) && self.value.as_deref().is_none_or(text)
    }
}

/// An output, or a dead letter.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// `None`: null.
    pub key: Option<Vec<u8>>,
    /// `None`: null.
    pub value: Option<Vec<u8>>,
    /// Its number for its key.
    pub seq: Option<Vec<u8>>,
    /// Partition and offset of the input record.
    pub at: (i32, i64),
    /// The call that made it; dead letters are made by none.
    pub by: Option<Call>,
}

fn header(record: &Record, name: &str) -> Option<Vec<u8>> {
    // Of what is repeated the last counts.
    record.headers.iter().rev().find(|(one, _)| one == name).and_then(|(_, value)| value.clone())
}

fn number<T: std::str::FromStr>(record: &Record, name: &str) -> anyhow::Result<T> {
    let value = header(record, name).and_then(|value| String::from_utf8(value).ok()?.parse().ok());
    value.ok_or_else(|| anyhow!("the header {name} is no number"))
}

/// Reads `PARTITION:OFFSET`.
pub fn place(text: &[u8]) -> Option<(i32, i64)> {
    let (partition, offset) = std::str::from_utf8(text).ok()?.split_once(':')?;
    Some((partition.parse().ok()?, offset.parse().ok()?))
}

/// Any record of an input.
pub fn input(_: i64, record: Record) -> anyhow::Result<Input> {
    let seq = header(&record, SEQ);
    Ok(Input { key: record.key, value: record.value, seq })
}

/// An output of a stage.
pub fn output(_: i64, record: Record) -> anyhow::Result<Made> {
    let at = header(&record, AT).as_deref().and_then(place).context("the header `at`")?;
    let by = header(&record, BY).as_deref().and_then(call).context("the header `by`")?;
    let seq = header(&record, SEQ);
    Ok(Made { key: record.key, value: record.value, seq, at, by: Some(by) })
}

/// A dead letter.
pub fn dead_letter(_: i64, record: Record) -> anyhow::Result<Made> {
    let at = (number(&record, headers::PARTITION)?, number(&record, headers::OFFSET)?);
    let seq = header(&record, SEQ);
    Ok(Made { key: record.key, value: record.value, seq, at, by: None })
}

/// An entry of a changelog, or of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Kind and key, as they stand there.
    pub key: Vec<u8>,
    /// `None`: deleted.
    pub state: Option<Tally>,
}

/// Reads an entry: one version byte and JSON, behind a kind and the key.
pub fn entry(key: Option<&[u8]>, value: Option<&[u8]>) -> anyhow::Result<Entry> {
    let key = key.context("an entry without a key")?;
    anyhow::ensure!(key.first() == Some(&0), "an entry of kind {:?}, states have kind 0", key.first());
    let state = match value {
        None => None,
        Some(value) => {
            anyhow::ensure!(value.first() == Some(&1), "a state of version {:?}", value.first());
            Some(serde_json::from_slice(&value[1..]).context("the state")?)
        }
    };
    Ok(Entry { key: key.to_vec(), state })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(headers: &[(&str, &str)]) -> Record {
        let headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), Some(value.as_bytes().to_vec())));
        Record { key: Some(b"k".to_vec()), headers: headers.collect(), ..Record::default() }
    }

    #[test]
    fn an_output_tells_what_it_was_made_of() {
        let made = output(0, record(&[("seq", "4"), ("at", "3:17"), ("by", "0a.2")])).expect("an output");
        assert_eq!((made.at, made.by, made.seq), ((3, 17), Some((10, 2)), Some(b"4".to_vec())));
        for headers in [&[][..], &[("at", "3")], &[("at", "3:17")], &[("at", "x:1"), ("by", "0a.2")]] {
            assert!(output(0, record(headers)).is_err());
        }
    }

    #[test]
    fn a_dead_letter_tells_where_it_comes_from() {
        let of = [(headers::PARTITION, "2"), (headers::OFFSET, "5")];
        assert_eq!(dead_letter(0, record(&of)).expect("a dead letter").at, (2, 5));
        assert!(dead_letter(0, record(&of[..1])).is_err());
    }

    #[test]
    fn what_no_codec_reads_is_invalid() {
        let one = |key: Option<&[u8]>, value: Option<&[u8]>| Input {
            key: key.map(<[u8]>::to_vec),
            value: value.map(<[u8]>::to_vec),
            seq: None,
        };
        assert!(one(Some(b"a"), None).is_valid() && one(Some(b"a"), Some(b"x")).is_valid());
        assert!(!one(None, Some(b"x")).is_valid() && !one(Some(b"a"), Some(b"\xff")).is_valid());
    }

    #[test]
    fn entries_are_states() {
        let state = br#"1{"n":3,"at":"0:4","by":"0a.2"}"#.iter().copied().enumerate();
        let value: Vec<u8> = state.map(|(at, byte)| if at == 0 { 1 } else { byte }).collect();
        let read = entry(Some(b"\0a"), Some(&value)).expect("an entry");
        assert_eq!(read.state, Some(Tally { n: 3, at: "0:4".into(), by: "0a.2".into() }));
        assert_eq!(entry(Some(b"\0a"), None).expect("a tombstone").state, None);
        assert!(entry(Some(b"\x01a"), None).is_err() && entry(None, None).is_err());
        assert!(entry(Some(b"\0a"), Some(b"\x02{}")).is_err());
    }
}
