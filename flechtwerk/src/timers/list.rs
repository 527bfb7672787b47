//! The bytes of timers, as they lie in changelogs and stores (S2.7): the pending timers of one state key are one entry of
//! kind 1 under that key, so that they are looked up together with the state, and change with it in one write. Pinned by
//! the golden file `tests/golden/timers.txt`.
//!
//! The value is the version, and then each timer in the order of their names: the name's length as a varint, the name, a
//! byte for the clock, and the due time as eight bytes, the highest first. A key without timers has no entry. Decoding is
//! strict, so that equal timers are equal bytes.

use crate::format::{self, FormatError};

/// The version that is written, and the only one there is.
pub(crate) const VERSION: u32 = 1;
/// Under this key of kind 2 the stream time of a task lies.
pub(crate) const STREAM_TIME: &[u8] = b"\x02stream-time";
/// The version of that.
pub(crate) const STREAM_TIME_VERSION: u32 = 1;
/// Bytes of a name.
pub(crate) const LONGEST_NAME: usize = 255;
/// Timers of one key.
pub(crate) const MOST: usize = 1_000;

/// What a timer goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clock {
    /// The timestamps of records: it fires when a record as late as that has come.
    EventTime,
    /// The clock of the machine.
    WallClock,
}

impl Clock {
    /// Both.
    pub(crate) const ALL: [Clock; 2] = [Clock::EventTime, Clock::WallClock];

    pub(crate) fn byte(self) -> u8 {
        match self {
            Clock::EventTime => 0,
            Clock::WallClock => 1,
        }
    }

    /// As words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Clock::EventTime => "event time",
            Clock::WallClock => "wall clock",
        }
    }
}

/// A timer that has not fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) name: String,
    pub(crate) clock: Clock,
    /// Milliseconds since the epoch, not negative.
    pub(crate) due: i64,
}

/// Bytes that are no timers, or those of another release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListError {
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("they are of version {0}, this program knows version 1")]
    UnknownVersion(u32),
    #[error("the value ends within a timer, or there is none in it")]
    Truncated,
    #[error("a name is empty, too long, or no UTF-8")]
    Name,
    #[error("the names are not in order, or one stands there twice")]
    Order,
    #[error("unknown clock {0}, known are 0 (event time) and 1 (wall clock)")]
    UnknownClock(u8),
    #[error("a due time is negative")]
    Negative,
}

/// Appends an entry's value; `timers` are in the order of their names, and at least one.
pub(crate) fn encode(timers: &[Pending], into: &mut Vec<u8>) {
    format::put_version(VERSION, into);
    for Pending { name, clock, due } in timers {
        format::put_version(name.len() as u32, into);
        into.extend_from_slice(name.as_bytes());
        into.push(clock.byte());
        into.extend_from_slice(&due.to_be_bytes());
    }
}

/// Reads an entry's value.
pub(crate) fn decode(value: &[u8]) -> Result<Vec<Pending>, ListError> {
    let mut timers = Vec::new();
    visit(value, |name, clock, due| timers.push(Pending { name: name.to_owned(), clock, due }))?;
    Ok(timers)
}

/// How many timers there are, and the earliest due time of each clock.
pub(crate) fn summary(value: &[u8]) -> Result<Summary, ListError> {
    let mut summary = Summary::default();
    visit(value, |_, clock, due| {
        summary.count += 1;
        let earliest = &mut summary.earliest[usize::from(clock.byte())];
        *earliest = Some(earliest.map_or(due, |earliest| earliest.min(due)));
    })?;
    Ok(summary)
}

/// See [`summary`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(unreachable_pub, reason = "a simulation reaches it")]
pub struct Summary {
    pub(crate) count: u64,
    /// By the byte of the clock.
    pub(crate) earliest: [Option<i64>; 2],
}

impl Summary {
    /// Of an entry that was read strictly before, or made by this program.
    #[cfg(feature = "runtime")]
    pub(crate) fn of(value: Option<&[u8]>) -> Summary {
        value.and_then(|value| summary(value).ok()).unwrap_or_default()
    }

    /// That of one clock.
    pub(crate) fn earliest_of(&self, clock: Clock) -> Option<i64> {
        self.earliest[usize::from(clock.byte())]
    }

    /// The earliest due times there are.
    pub(crate) fn due(self) -> impl Iterator<Item = (Clock, i64)> {
        Clock::ALL.into_iter().filter_map(move |clock| self.earliest_of(clock).map(|due| (clock, due)))
    }
}

fn visit<'a>(value: &'a [u8], mut each: impl FnMut(&'a str, Clock, i64)) -> Result<(), ListError> {
    let (version, mut rest) = format::take_version(value)?;
    if version != VERSION {
        return Err(ListError::UnknownVersion(version));
    }
    let mut before: Option<&str> = None;
    while !rest.is_empty() || before.is_none() {
        let (length, after) = match format::take_version(rest) {
            Err(FormatError::TruncatedVersion) => return Err(ListError::Truncated),
            taken => taken?,
        };
        let length = length as usize;
        if length == 0 || length > LONGEST_NAME {
            return Err(ListError::Name);
        }
        let (name, after) = after.split_at_checked(length).ok_or(ListError::Truncated)?;
        let name = std::str::from_utf8(name).map_err(|_| ListError::Name)?;
        if before.is_some_and(|before| before >= name) {
            return Err(ListError::Order);
        }
        let (clock, after) = after.split_first().ok_or(ListError::Truncated)?;
        let clock = match clock {
            0 => Clock::EventTime,
            1 => Clock::WallClock,
            other => return Err(ListError::UnknownClock(*other)),
        };
        let (due, after) = after.split_first_chunk().ok_or(ListError::Truncated)?;
        let due = i64::from_be_bytes(*due);
        if due < 0 {
            return Err(ListError::Negative);
        }
        each(name, clock, due);
        (before, rest) = (Some(name), after);
    }
    Ok(())
}

/// The value of the stream time.
pub(crate) fn encode_stream_time(time: i64) -> Vec<u8> {
    let mut value = Vec::with_capacity(9);
    format::put_version(STREAM_TIME_VERSION, &mut value);
    value.extend_from_slice(&time.to_be_bytes());
    value
}

/// Reads it.
pub(crate) fn decode_stream_time(value: &[u8]) -> Result<i64, ListError> {
    let (version, time) = format::take_version(value)?;
    if version != STREAM_TIME_VERSION {
        return Err(ListError::UnknownVersion(version));
    }
    let time = i64::from_be_bytes(time.try_into().map_err(|_| ListError::Truncated)?);
    if time < 0 { Err(ListError::Negative) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOLDEN: &str = include_str!("../../tests/golden/timers.txt");

    fn hex(text: &str) -> Vec<u8> {
        assert!(text.len().is_multiple_of(2), "odd number of hex digits: {text}");
        let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    fn golden(section: &str) -> Vec<(&'static str, Vec<u8>)> {
        let lines: Vec<_> = GOLDEN
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
            .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
            .filter(|fields| fields[0] == section)
            .map(|fields| (fields[1], hex(fields[2])))
            .collect();
        assert!(!lines.is_empty(), "no line of section {section}");
        lines
    }

    /// `name clock due, ..`
    fn timers(text: &str) -> Vec<Pending> {
        text.split(',')
            .map(|timer| match timer.split_whitespace().collect::<Vec<_>>()[..] {
                [name, clock, due] => Pending {
                    name: name.to_owned(),
                    clock: if clock == "event" { Clock::EventTime } else { Clock::WallClock },
                    due: due.parse().unwrap(),
                },
                _ => panic!("not a timer: {timer}"),
            })
            .collect()
    }

    #[test]
    fn timers_are_as_in_the_golden_file() {
        for (text, bytes) in golden("timers") {
            let timers = timers(text);
            let mut encoded = Vec::new();
            encode(&timers, &mut encoded);
            assert_eq!(encoded, bytes, "{text}");
            assert_eq!(decode(&bytes), Ok(timers), "{text}");
        }
    }

    #[test]
    fn the_stream_time_is_as_in_the_golden_file() {
        for (time, bytes) in golden("stream time") {
            let time = time.parse().unwrap();
            assert_eq!(encode_stream_time(time), bytes);
            assert_eq!(decode_stream_time(&bytes), Ok(time));
        }
        for (key, bytes) in golden("stream time key") {
            assert_eq!([b"\x02", key.as_bytes()].concat(), bytes);
            assert_eq!(STREAM_TIME, bytes);
        }
    }

    #[test]
    fn refused_bytes_are_refused_as_in_the_golden_file() {
        for (why, bytes) in golden("refused timers") {
            assert_eq!(format!("{:?}", decode(&bytes).unwrap_err()), why);
            assert_eq!(summary(&bytes).unwrap_err(), decode(&bytes).unwrap_err());
        }
        for (why, bytes) in golden("refused stream time") {
            assert_eq!(format!("{:?}", decode_stream_time(&bytes).unwrap_err()), why);
        }
    }

    prop_compose! {
        fn any_timers()(
            timers in prop::collection::btree_map("[a-zäß]{1,9}", (any::<bool>(), 0i64..), 1..6)
        ) -> Vec<Pending> {
            let clock = |wall| if wall { Clock::WallClock } else { Clock::EventTime };
            timers.into_iter().map(|(name, (wall, due))| Pending { name, clock: clock(wall), due }).collect()
        }
    }

    proptest! {
        #[test]
        fn all_timers_come_back(timers in any_timers()) {
            let mut bytes = Vec::new();
            encode(&timers, &mut bytes);
            prop_assert_eq!(decode(&bytes), Ok(timers.clone()));
            let summary = summary(&bytes).unwrap();
            prop_assert_eq!(summary.count, timers.len() as u64);
            for clock in Clock::ALL {
                let earliest = timers.iter().filter(|timer| timer.clock == clock).map(|timer| timer.due).min();
                prop_assert_eq!(summary.earliest[usize::from(clock.byte())], earliest);
            }
        }

        /// What is not refused is what would have been written.
        #[test]
        fn what_decodes_is_the_only_encoding(timers in any_timers(), at: prop::sample::Index, to: u8) {
            let mut bytes = Vec::new();
            encode(&timers, &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] = to;
            if let Ok(timers) = decode(&bytes) {
                let mut again = Vec::new();
                encode(&timers, &mut again);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn what_is_cut_is_refused(timers in any_timers(), keep: prop::sample::Index) {
            let mut bytes = Vec::new();
            encode(&timers, &mut bytes);
            let keep = keep.index(bytes.len());
            if let Ok(fewer) = decode(&bytes[..keep]) {
                prop_assert!(fewer.len() < timers.len(), "cut between two timers, it is a shorter list");
            }
        }
    }
}
