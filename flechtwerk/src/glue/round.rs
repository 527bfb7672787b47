//! What passes between the runtime and a stage's generated code: raw records in, changed state and encoded
//! outputs out. Everything here is bytes; types exist only inside the generated code.

use std::ops::Range;

use bytes::Bytes;

use crate::BoxError;
use crate::compact::CompactBytes;
use crate::format::{self, Kind};
use crate::record::Headers;
use crate::timers::{Clock, DueBy};

/// One record as it was read from Kafka.
#[derive(Clone)]
pub struct RawRecord {
    /// Index into the stage's inputs.
    pub input: u16,
    /// The partition it was read from.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// Milliseconds since the epoch; negative where the record has none.
    pub timestamp: i64,
    /// The key's bytes, `None` for null.
    pub key: Option<Bytes>,
    /// The value's bytes, `None` for null.
    pub value: Option<Bytes>,
    /// The headers, in order.
    pub headers: Headers,
}

impl RawRecord {
    /// Bytes of key and value, for batch limits.
    pub fn size(&self) -> usize {
        self.key.as_ref().map_or(0, Bytes::len) + self.value.as_ref().map_or(0, Bytes::len)
    }

    /// Where it lies.
    pub fn at(&self) -> Cause {
        Cause { input: self.input, partition: self.partition, offset: self.offset }
    }
}

/// What became of a bucket's state in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// As it was, or the stage has no state.
    Unchanged,
    /// The encoded new state.
    Set(CompactBytes),
    /// Removed (it may not have existed).
    Deleted,
}

/// The records of one state key within a round, and that key's state.
pub struct Bucket {
    /// Where the changelog has the state: the kind byte, and the state key (S2.3).
    pub changelog_key: CompactBytes,
    /// The bucket's records: a range of [`Round::records`], in the order of processing.
    pub records: Range<usize>,
    /// The state before the round, as encoded in the changelog (version and codec bytes).
    pub state: Option<CompactBytes>,
    /// Filled in by the round.
    pub change: StateChange,
    /// The key's timers before the round, as encoded in the changelog; `None` as well where the stage takes none.
    pub timers: Option<CompactBytes>,
    /// Filled in by the round.
    pub timers_change: StateChange,
    /// Timers that fired; filled in by the round.
    pub fired: u64,
}

impl Bucket {
    /// A bucket with nothing stored yet.
    pub fn new(changelog_key: CompactBytes, records: Range<usize>) -> Bucket {
        Bucket {
            changelog_key,
            records,
            state: None,
            change: StateChange::Unchanged,
            timers: None,
            timers_change: StateChange::Unchanged,
            fired: 0,
        }
    }

    /// The same of a state key.
    pub fn of(key: &[u8], records: Range<usize>) -> Bucket {
        Bucket::new(format::key(Kind::State, key), records)
    }

    /// The state key; empty for null record keys of stages without state.
    pub fn key(&self) -> &[u8] {
        &self.changelog_key[1..]
    }
}

/// What a task takes from its queues at once, grouped by state key.
pub struct Round {
    /// All records, grouped by bucket.
    pub records: Vec<RawRecord>,
    /// The buckets, in order of first appearance; one whose timers are due need not have any records.
    pub buckets: Vec<Bucket>,
    /// What the round knows of time, if the stage takes timers.
    pub times: Times,
}

impl Round {
    /// A round that knows of no time.
    pub fn new(records: Vec<RawRecord>, buckets: Vec<Bucket>) -> Round {
        Round { records, buckets, times: Times::default() }
    }
}

/// The times by which timers go in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The largest timestamp of a record that was taken, those of the round among them.
    pub stream_time: Option<i64>,
    /// The wall clock.
    pub now: i64,
    /// What fires at the end of each bucket, and in buckets without records.
    pub due: DueBy,
}

/// A timer that fires.
pub struct FiredTimer {
    /// The state key.
    pub key: Bytes,
    /// Its name.
    pub name: String,
    /// When it was due.
    pub due: i64,
    /// By which clock.
    pub clock: Clock,
}

/// A timer in a message; its key is payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerPlace {
    /// Its name.
    pub name: String,
    /// When it was due.
    pub due: i64,
    /// By which clock.
    pub clock: Clock,
}

impl std::fmt::Display for TimerPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "timer \"{}\", due at {} ms of {}", self.name, self.due, self.clock.name())
    }
}

/// Where a record lies, such as the one that an encoded output came from; for messages. What a timer made has [`Cause::TIMER`] as its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// Index into the stage's inputs.
    pub input: u16,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
}

impl Cause {
    /// No input: a timer.
    pub const TIMER: u16 = u16::MAX;
}

/// One encoded output; its bytes lie in [`Outputs::bytes`].
pub struct OutputRecord {
    /// Index into the stage's outputs ([`super::StageInfo::outputs`] order).
    pub topic: u16,
    /// Range of the key, `None` for null.
    pub key: Option<Range<usize>>,
    /// Range of the value, `None` for null.
    pub value: Option<Range<usize>>,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// An explicit partition, where the user asked for one.
    pub partition: Option<i32>,
    /// Headers, in order; mostly none.
    pub headers: Headers,
    /// The input record that made it.
    pub cause: Cause,
}

/// The outputs of a batch: one buffer, many records, in order per bucket.
#[derive(Default)]
pub struct Outputs {
    /// Keys and values, back to back.
    pub bytes: Vec<u8>,
    /// The records.
    pub records: Vec<OutputRecord>,
    /// What was decided about records that did not decode.
    pub invalid: Vec<Decided>,
}

/// A place in [`Outputs`] to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    bytes: usize,
    records: usize,
    invalid: usize,
}

/// What becomes of a record that did not decode, if its stage goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It is left out.
    Skip,
    /// It is processed with another value.
    Instead,
    /// It goes to the dead-letter topic.
    DeadLetter,
}

/// One record that did not decode, and what was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The record.
    pub at: Cause,
    /// What becomes of it.
    pub settled: Settled,
}

impl Outputs {
    /// Marks the present end, to go back to with [`Outputs::truncate`].
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), records: self.records.len(), invalid: self.invalid.len() }
    }

    /// Forgets everything after `mark`.
    pub fn truncate(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.records.truncate(mark.records);
        self.invalid.truncate(mark.invalid);
    }

    /// The bytes of a range.
    pub fn slice(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }
}

/// Which part of a record did not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPart {
    /// The key.
    Key,
    /// The value.
    Value,
}

impl RecordPart {
    /// As a word.
    pub fn name(self) -> &'static str {
        match self {
            RecordPart::Key => "key",
            RecordPart::Value => "value",
        }
    }
}

/// What went wrong with a record.
#[derive(Debug)]
pub enum FailureKind {
    /// The key or value is not what the topic's codec expects.
    Decode(RecordPart),
    /// The same, and what the stage's own function decided about it can't be done.
    Undecided(RecordPart),
    /// The function returned an error.
    User,
    /// The function panicked.
    Panic,
    /// An output could not be encoded; the topic's index in the stage's outputs.
    Encode {
        /// Index into the stage's outputs.
        output: u16,
    },
    /// The stored state could not be decoded; its format version where that is the trouble.
    State {
        /// The unknown version.
        version: Option<u32>,
    },
    /// The stored state is of an older version and could not be brought up to date.
    Upgrade {
        /// The version that is stored.
        version: u32,
    },
    /// The new state could not be encoded.
    EncodeState,
    /// The stored timers could not be decoded.
    StoredTimers,
    /// A timer was set to what no timer can be.
    SetTimer,
    /// The state key of a timer is not what the function's `Timer` says.
    TimerKey,
    /// The timers of one key fire for ever.
    EndlessTimers,
}

/// A failed round: nothing of it counts.
#[derive(Debug)]
pub struct Failure {
    /// Index of the record in [`Round::records`]; in a round without records it names none.
    pub record: usize,
    /// It was this timer, and not the record.
    pub timer: Option<Box<TimerPlace>>,
    /// What kind of failure.
    pub kind: FailureKind,
    /// The cause; never contains payload bytes of ours.
    pub error: BoxError,
}

/// How a round ended.
pub enum RoundEnd {
    /// Every bucket is done.
    Done,
    /// The round's outputs and states passed the byte budget: nothing of it counts; run fewer records.
    OverBudget,
}
