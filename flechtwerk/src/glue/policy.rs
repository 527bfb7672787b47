//! What a stage does with records that don't decode (S8.2): the function that its attribute names is asked, and what it
//! answers is carried out. The function is synchronous, since state keys need it where nothing can wait, and since an
//! answer that waits for others would hold up all keys of a round. It is asked in the middle of a round, so that all it
//! leads to is part of the batch: computed again, it is undone with the rest.

use bytes::Bytes;

use super::runner::caught;
use super::{Decided, Env, FailureKind, OutputRecord, Outputs, RawRecord, RecordPart, Settled};
use super::{Stage, Topic, TopicInfo, Tried};
use crate::codec::Nullable;
use crate::error::BoxError;
use crate::invalid::{Answer, DeadLetter, Instead, Invalid, headers};

/// A stage with a topic for dead letters.
pub struct WithDeadLetters;
/// A stage without, or a table.
pub struct NoDeadLetters;

/// A function that decides; `D` is what the stage has.
#[diagnostic::on_unimplemented(
    message = "this can't be the `on_invalid` of a stage",
    label = "not a function from `&Invalid` to an `Answer`",
    note = "write `fn name(record: &Invalid<'_>) -> Answer`, with both names from `flechtwerk::invalid`; ready-made there: \
            `crash`, `skip`, `dead_letter`"
)]
pub trait OnInvalid<D> {
    fn answer(&self, record: &Invalid<'_>) -> Answer;
}

impl<D, R: Answers<D>, F: Fn(&Invalid<'_>) -> R> OnInvalid<D> for F {
    fn answer(&self, record: &Invalid<'_>) -> Answer {
        self(record).answer()
    }
}

/// What such a function may return.
#[diagnostic::on_unimplemented(
    message = "`on_invalid` is a function that returns an `Answer`, not `{Self}`",
    label = "does not return an `Answer`",
    note = "write `fn name(record: &Invalid<'_>) -> Answer`, with both names from `flechtwerk::invalid`; it is not `async`, \
            since a decision about bytes waits for nobody"
)]
pub trait Answers<D> {
    fn answer(self) -> Answer;
}

impl<D> Answers<D> for Answer {
    fn answer(self) -> Answer {
        self
    }
}

impl<D: HasDeadLetters> Answers<D> for DeadLetter {
    fn answer(self) -> Answer {
        Answer::DeadLetter
    }
}

/// There is a topic for dead letters.
#[diagnostic::on_unimplemented(
    message = "this `on_invalid` sends records to a dead-letter topic, and the attribute names none",
    label = "where to?",
    note = "add `dead_letters = Topic`, a topic with `key = Nullable<Bytes>, value = Nullable<Bytes>`; records of a table, \
            which is read outside of any transaction, can only be skipped or replaced"
)]
pub trait HasDeadLetters {}
impl HasDeadLetters for WithDeadLetters {}

/// Asks the function of a stage.
pub fn on_invalid<D, F: OnInvalid<D>>(function: F, record: &Invalid<'_>) -> Answer {
    function.answer(record)
}

/// A topic that takes any bytes, and null: what did not decode may be either.
#[diagnostic::on_unimplemented(
    message = "topic `{Self}` can't take dead letters: it writes keys as `{K}` and values as `{V}`",
    label = "its codecs are not `Nullable<Bytes>`",
    note = "a dead letter is the record as it was read, any bytes or null: declare the topic as \
            `#[topic(\"..\", key = Nullable<Bytes>, value = Nullable<Bytes>)]`"
)]
pub trait TakesAnything<K, V> {}
impl<T> TakesAnything<Nullable<Bytes>, Nullable<Bytes>> for T {}

/// Proof that a topic can take dead letters.
pub const fn dead_letters<T: Topic + TakesAnything<T::KeyCodec, T::ValueCodec>>() -> usize {
    0
}

/// A record, decoded or decided about.
pub(super) enum Decoded<I> {
    /// To be processed.
    Input(I),
    /// To be processed, with another value.
    Instead(I),
    /// Not to be processed.
    Left(Note),
}

/// What is to be written down of a record that did not decode.
pub(super) struct Note {
    /// Index into the round's records.
    pub(super) record: usize,
    pub(super) settled: Settled,
    /// Of a dead letter: which part it was, and the error.
    why: Option<(RecordPart, String)>,
}

/// Decodes a record, or asks the stage what to do. `key` is the state key of the bucket that it is in, where it was
/// computed; `record` its index in the round.
pub(super) fn decode<S: Stage>(
    raw: &RawRecord,
    record: usize,
    key: Option<&Bytes>,
) -> Tried<Decoded<S::Input>> {
    let (part, error) = match S::decode(raw) {
        Ok(input) => return Ok(Decoded::Input(input)),
        Err((FailureKind::Decode(part), error)) if S::INFO.policy.named => (part, error),
        Err(trouble) => return Err(trouble),
    };
    let left = |settled, why| Ok(Decoded::Left(Note { record, settled, why }));
    match decide::<S>(raw, part, error)? {
        Ruling::Skip => left(Settled::Skip, None),
        Ruling::DeadLetter(error) => left(Settled::DeadLetter, Some((part, chain(&error)))),
        Ruling::Instead(raw) => {
            // A function that answers now this and now that would change the state of another key.
            if key.is_some_and(|key| S::key(&raw).ok().as_ref() != Some(key)) {
                return undecided(part, "it gave another answer when the state key was computed, but it must always give the same for one record".into());
            }
            Ok(Decoded::Instead(S::decode(&raw).or_else(|(_, error)| not_read_back(part, &error))?))
        }
    }
}

impl Note {
    /// That a record is processed with another value.
    pub(super) fn instead(record: usize) -> Note {
        Note { record, settled: Settled::Instead, why: None }
    }

    /// Leaves in `outputs` what came of it; gives the bytes of the dead letter, if it is one.
    pub(super) fn write<S: Stage>(self, raw: &RawRecord, env: &Env, outputs: &mut Outputs) -> usize {
        let at = raw.at();
        outputs.invalid.push(Decided { at, settled: self.settled });
        let Some((part, error)) = self.why else { return 0 };
        let before = outputs.bytes.len();
        let bytes = &mut outputs.bytes;
        let mut put = |part: &Option<Bytes>| {
            let start = bytes.len();
            part.as_ref().map(|part| {
                bytes.extend_from_slice(part);
                start..bytes.len()
            })
        };
        let (key, value) = (put(&raw.key), put(&raw.value));
        let input = usize::from(raw.input);
        let mut all = raw.headers.clone();
        let mut header = |name: &str, text: String| all.push(name, Some(text.into()));
        header(
            headers::TOPIC,
            env.inputs.get(input).map_or(S::INFO.inputs[input].name, |name| &**name).into(),
        );
        header(headers::PARTITION, raw.partition.to_string());
        header(headers::OFFSET, raw.offset.to_string());
        header(headers::PART, part.name().into());
        header(headers::ERROR, error);
        header(headers::STAGE, S::INFO.name.into());
        all.push(headers::TIMESTAMP, (raw.timestamp >= 0).then(|| raw.timestamp.to_string().into()));
        let size = outputs.bytes.len() - before + all.size();
        outputs.records.push(OutputRecord {
            // Behind all that the function sends to.
            topic: (S::INFO.outputs().count() - 1) as u16,
            key,
            value,
            timestamp: raw.timestamp,
            partition: None,
            headers: all,
            cause: at,
        });
        size
    }
}

/// The state key of a record; one that is left out goes with those of its own key's bytes.
pub(super) fn key<S: Stage>(raw: &RawRecord) -> Tried<Bytes> {
    let (part, error) = match S::key(raw) {
        Err((FailureKind::Decode(part), error)) if S::INFO.policy.named => (part, error),
        key => return key,
    };
    match decide::<S>(raw, part, error)? {
        Ruling::Skip | Ruling::DeadLetter(_) => Ok(raw.key.clone().unwrap_or_default()),
        Ruling::Instead(raw) => S::key(&raw).or_else(|trouble| match trouble {
            (FailureKind::Decode(_), error) => not_read_back(part, &error),
            trouble => Err(trouble),
        }),
    }
}

/// An answer that can be carried out.
enum Ruling {
    Skip,
    /// Why it is one.
    DeadLetter(BoxError),
    /// The record with its other value.
    Instead(RawRecord),
}

#[cold]
fn decide<S: Stage>(raw: &RawRecord, part: RecordPart, error: BoxError) -> Tried<Ruling> {
    let topic = S::INFO.inputs[usize::from(raw.input)];
    let record = Invalid { stage: S::INFO.name, topic, raw, part, error: &error };
    let answer = caught(|| Ok(S::on_invalid(&record)))?;
    let nowhere = S::INFO
        .policy
        .dead_letters
        .is_none()
        .then_some("the stage names no topic for that: add `dead_letters = Topic` to its attribute");
    rule(answer, raw, topic, part, error, nowhere)
}

/// What a topic's own function says of a record of a table or a config: another record, or none.
#[cold]
pub(super) fn of_topic<T: Topic>(
    decide: fn(&Invalid<'_>) -> Answer,
    raw: &RawRecord,
    stage: &'static str,
    part: RecordPart,
    error: BoxError,
) -> Tried<Option<RawRecord>> {
    let record = Invalid { stage, topic: T::INFO, raw, part, error: &error };
    let answer = caught(|| Ok(decide(&record)))?;
    let nowhere = Some("tables and configs are read outside of any transaction: answer `Skip`");
    match rule(answer, raw, T::INFO, part, error, nowhere)? {
        Ruling::Instead(raw) => Ok(Some(raw)),
        Ruling::Skip | Ruling::DeadLetter(_) => Ok(None),
    }
}

/// Whether an answer can be carried out. `nowhere` says why there can be no dead letters.
fn rule(
    answer: Answer,
    raw: &RawRecord,
    of: &TopicInfo,
    part: RecordPart,
    error: BoxError,
    nowhere: Option<&str>,
) -> Tried<Ruling> {
    match (answer, nowhere) {
        (Answer::Crash, _) => Err((FailureKind::Decode(part), error)),
        (Answer::Skip, _) => Ok(Ruling::Skip),
        (Answer::DeadLetter, None) => Ok(Ruling::DeadLetter(error)),
        (Answer::DeadLetter, Some(why)) => {
            undecided(part, format!("it answered `DeadLetter`, and {why} (the record: {})", chain(&error)))
        }
        (Answer::Instead(Instead { topic, partition, offset, value }), _) => {
            let mine = topic == of.id;
            if part == RecordPart::Key || !mine || (partition, offset) != (raw.partition, raw.offset) {
                return undecided(part, "it answered with a value that was made for another record".into());
            }
            match value {
                Ok(value) => Ok(Ruling::Instead(RawRecord { value, ..raw.clone() })),
                Err(error) => {
                    undecided(part, format!("the value that it gave can't be encoded: {}", chain(&error)))
                }
            }
        }
    }
}

pub(super) fn not_read_back<T>(part: RecordPart, error: &BoxError) -> Tried<T> {
    undecided(part, format!("the value that it gave is written, but can't be read back: {}", chain(error)))
}

fn undecided<T>(part: RecordPart, why: String) -> Tried<T> {
    Err((FailureKind::Undecided(part), why.into()))
}

/// An error with its causes.
fn chain(error: &BoxError) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
