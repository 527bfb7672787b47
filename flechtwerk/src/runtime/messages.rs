//! What the runtime tells people about tasks: every message names the place and the way out.

use std::fmt::Write as _;

use super::context::StageContext;
use super::error::{Failure, chain};
use crate::BoxError;
use crate::glue::{Cause, Decided, FailureKind, RawRecord, RecordPart, Settled, StageInfo, TimerPlace};
use crate::naming::StageNames;
use crate::observe::names;
use crate::port::StoreError;
use crate::task::{InputRange, Stop, Warning};

/// What to do about a state of a version that is not known.
const OTHER_VERSION: &str = "a newer program has written it and can read it; if the version is an older one, name the way from it \
     with `upgrade_from`; or `reset` the stage, which begins it anew";
/// The same of one that the type does not fit.
const OTHER_TYPE: &str = "the type has changed under the same version: raise it, and name the way from the old type with \
     `upgrade_from`; or `reset` the stage, which begins it anew";

/// "words/3 offsets 17 to 20", for each input.
pub(super) fn places(context: &StageContext, partition: i32, records: &[RawRecord]) -> String {
    let mut text = String::new();
    for (input, topic) in context.names.inputs.iter().enumerate() {
        let mut of_input = records.iter().filter(|record| usize::from(record.input) == input);
        let Some(first) = of_input.next() else { continue };
        let last = of_input.next_back().unwrap_or(first);
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{topic}/{partition} offsets {} to {}", first.offset, last.offset);
    }
    text
}

/// The same of timers.
pub(super) fn due_timers(partition: i32) -> String {
    format!("timers of partition {partition} that are due")
}

/// A record that could not be processed (S6.1, S8.1); never with its payload.
pub(super) fn record_failure(
    context: &StageContext,
    record: &RawRecord,
    kind: &FailureKind,
    error: &BoxError,
) -> Failure {
    let stage = context.info.name;
    let topic = &context.names.inputs[usize::from(record.input)];
    let place = format!("{topic}/{} offset {}", record.partition, record.offset);
    let error = chain(&**error);
    let again = format!(
        "nothing of its batch has counted: mend the cause and start again, or move the offset of group {} behind the \
         record",
        context.names.application_id
    );
    Failure::new(match kind {
        FailureKind::Decode(part) => {
            names::invalid_records(stage, topic, names::CRASH).increment(1);
            let topic_info = context.info.inputs[usize::from(record.input)];
            let (part, codec) = match part {
                RecordPart::Key => ("key", topic_info.key_codec),
                RecordPart::Value => ("value", topic_info.value_codec),
            };
            format!(
                "stage {stage}: the {part} of the record at {place} is not what the topic's type says ({codec}): \
                 {error}; correct the producer or the type, or move the offset of group {} behind the record",
                context.names.application_id
            )
        }
        FailureKind::Undecided(part) => {
            names::invalid_records(stage, topic, names::CRASH).increment(1);
            format!(
                "stage {stage}: the {} of the record at {place} is not what the topic's type says, and what \
                 `on_invalid` answered can't be done: {error}; {again}",
                part.name()
            )
        }
        FailureKind::User => format!("stage {stage} failed at the record at {place}: {error}; {again}"),
        FailureKind::Panic => format!("stage {stage} panicked at the record at {place}: {error}; {again}"),
        FailureKind::Encode { output } => format!(
            "stage {stage}: an output to topic {} made of the record at {place} can't be encoded: {error}",
            context.names.outputs[usize::from(*output)]
        ),
        FailureKind::State { version: Some(version) } => format!(
            "stage {stage}: the state for the record at {place} is of version {version}, which this program does \
             not know: {error}; {OTHER_VERSION}"
        ),
        FailureKind::State { version: None } => {
            format!(
                "stage {stage}: the state for the record at {place} can't be decoded: {error}; {OTHER_TYPE}"
            )
        }
        FailureKind::Upgrade { version } => format!(
            "stage {stage}: the state for the record at {place} is of version {version} and can't be upgraded: \
             {error}; {again}"
        ),
        FailureKind::EncodeState => {
            format!("stage {stage}: the state made of the record at {place} can't be encoded: {error}")
        }
        FailureKind::StoredTimers => {
            format!("stage {stage}: the timers for the record at {place} can't be read: {error}")
        }
        FailureKind::SetTimer | FailureKind::TimerKey | FailureKind::EndlessTimers => {
            format!("stage {stage} failed at the record at {place}: {error}; {again}")
        }
    })
}

/// A timer that could not be fired (S6.1); never with its key. `None`: before one was chosen.
pub(super) fn timer_failure(
    context: &StageContext,
    partition: i32,
    timer: Option<&TimerPlace>,
    kind: &FailureKind,
    error: &BoxError,
) -> Failure {
    let stage = context.info.name;
    let place = match timer {
        Some(timer) => format!("{timer}, of partition {partition}"),
        None => format!("the timers of partition {partition} that are due"),
    };
    let error = chain(&**error);
    let again = "nothing of its batch has counted: mend the cause and start again";
    Failure::new(match kind {
        FailureKind::Panic => format!("stage {stage} panicked at {place}: {error}; {again}"),
        FailureKind::Encode { output } => format!(
            "stage {stage}: an output to topic {} made at {place} can't be encoded: {error}",
            context.names.outputs[usize::from(*output)]
        ),
        FailureKind::State { version: Some(version) } => format!(
            "stage {stage}: the state for {place} is of version {version}, which this program does not know: {error}; \
             {OTHER_VERSION}"
        ),
        FailureKind::Upgrade { version } => format!(
            "stage {stage}: the state for {place} is of version {version} and can't be upgraded: {error}; {again}"
        ),
        FailureKind::State { version: None } => {
            format!("stage {stage}: the state for {place} can't be decoded: {error}; {OTHER_TYPE}")
        }
        FailureKind::EncodeState => {
            format!("stage {stage}: the state made at {place} can't be encoded: {error}")
        }
        FailureKind::TimerKey => format!(
            "stage {stage}: the state key of {place} is not what the `Timer` of its function says: {error}; correct the type, \
             or the function that computes state keys"
        ),
        FailureKind::StoredTimers => format!("stage {stage}: {place} can't be read: {error}"),
        FailureKind::Decode(_)
        | FailureKind::Undecided(_)
        | FailureKind::User
        | FailureKind::SetTimer
        | FailureKind::EndlessTimers => format!("stage {stage} failed at {place}: {error}; {again}"),
    })
}

/// Where a config lies: "the config at feeds/3 offset 17".
pub(super) fn config_place(names: &StageNames, at: Cause) -> String {
    match names.inputs.get(usize::from(at.input)) {
        Some(topic) => format!("the config at {topic}/{} offset {}", at.partition, at.offset),
        None => "its one config".to_owned(),
    }
}

/// What it means that config topics have more partitions than they had (S10.3f), and what to do.
pub(super) fn configs_grown(names: &StageNames) -> String {
    let grown = "configs are shared out by the number of partitions, and instances that differ in it would poll some of them twice and \
                 others not at all";
    match &names.changelog {
        None => format!("{grown}; start all instances of the stage again"),
        Some(changelog) => format!(
            "{grown}; changelog {changelog} has as many partitions as the config topics had, and the cursors of configs that move to \
             another one would be lost: `reset` the stage to begin all configs anew, or give the stage an application id of its own"
        ),
    }
}

/// A config that can't be used, or whose poll failed (S6.1, S8.1, S10.2); never with its payload.
pub(super) fn config_failure(
    info: &StageInfo,
    names: &StageNames,
    at: Cause,
    kind: &FailureKind,
    error: &BoxError,
) -> Failure {
    let (stage, place, error) = (info.name, config_place(names, at), chain(&**error));
    let again =
        "nothing of this page has counted, and all pages before it have: mend the cause and start again";
    Failure::new(match kind {
        FailureKind::Decode(part) => {
            count_crash(names, at);
            let topic = info.inputs.get(usize::from(at.input));
            let (part, codec) = match part {
                RecordPart::Key => ("key", topic.map_or("-", |topic| topic.key_codec)),
                RecordPart::Value => ("value", topic.map_or("-", |topic| topic.value_codec)),
            };
            format!(
                "stage {stage}: the {part} of {place} is not what the topic's type says ({codec}): {error}; write a \
                 correct one under the same key, or a null value, and start again; or let the topic's `on_invalid` decide"
            )
        }
        FailureKind::Undecided(part) => {
            count_crash(names, at);
            format!(
                "stage {stage}: the {} of {place} is not what the topic's type says, and what the topic's `on_invalid` \
                 answered can't be done: {error}",
                part.name()
            )
        }
        FailureKind::User => format!("stage {stage} failed at {place}: {error}; {again}"),
        FailureKind::Panic => format!("stage {stage} panicked at {place}: {error}; {again}"),
        FailureKind::Encode { output } => {
            let topic = names.outputs.get(usize::from(*output)).map_or("-", |topic| topic);
            format!("stage {stage}: a message to topic {topic} made at {place} can't be encoded: {error}")
        }
        FailureKind::State { version: Some(version) } => format!(
            "stage {stage}: the cursor of {place} is of version {version}, which this program does not know: {error}; \
             {OTHER_VERSION}"
        ),
        FailureKind::State { version: None } => {
            format!("stage {stage}: the cursor of {place} can't be decoded: {error}; {OTHER_TYPE}")
        }
        FailureKind::Upgrade { version, .. } => {
            format!("stage {stage}: the cursor of {place}, of version {version}, can't be upgraded: {error}")
        }
        FailureKind::EncodeState => {
            format!("stage {stage}: the cursor made at {place} can't be encoded: {error}")
        }
        FailureKind::StoredTimers
        | FailureKind::SetTimer
        | FailureKind::TimerKey
        | FailureKind::EndlessTimers => format!("stage {stage}: an extractor has no timers: {error}"),
    })
}

fn count_crash(names: &StageNames, at: Cause) {
    if let Some(topic) = names.inputs.get(usize::from(at.input)) {
        names::invalid_records(names.stage, topic, names::CRASH).increment(1);
    }
}

/// A source that has more for ever, and nothing new in it.
pub(super) fn fruitless(context: &StageContext, record: &RawRecord, pages: u32) -> Failure {
    Failure::new(format!(
        "stage {}: {pages} pages in a row of {} asked for another at once (`Next::Again`), each within a second, with the \
         cursor unchanged and the same messages or none; move the cursor, or return `Next::Idle` or `Next::After` where there is \
         nothing new",
        context.info.name,
        config_place(&context.names, record.at())
    ))
}

/// Counts what was decided about records of a committed batch that did not decode, and says so once for the batch.
pub(super) fn invalid(context: &StageContext, partition: i32, decided: &[Decided]) {
    let Some(first) = decided.first() else { return };
    let stage = context.info.name;
    for one in decided {
        names::invalid_records(stage, &context.names.inputs[usize::from(one.at.input)], outcome(one.settled))
            .increment(1);
    }
    let count = |settled| decided.iter().filter(|one| one.settled == settled).count();
    tracing::info!(
        stage,
        partition,
        skipped = count(Settled::Skip),
        replaced = count(Settled::Instead),
        dead_letters = count(Settled::DeadLetter),
        "records did not decode, the first at {}/{} offset {}; `on_invalid` decided about them",
        context.names.inputs[usize::from(first.at.input)],
        first.at.partition,
        first.at.offset,
    );
}

/// The word for it in metrics.
pub(super) fn outcome(settled: Settled) -> &'static str {
    match settled {
        Settled::Skip => names::SKIP,
        Settled::Instead => names::INSTEAD,
        Settled::DeadLetter => names::DEAD_LETTER,
    }
}

/// What to do about a transaction that its coordinator has forgotten.
pub(super) const HANGING: &str =
    "; one that outlives its time-out hangs, see `kafka-transactions.sh find-hanging`";

/// The question for the committed offsets of a task. An answer that does not come is mostly held back by a transaction
/// of the task's previous owner: the client asks again by itself, and its error does not say so.
pub(super) fn committed_offsets(context: &StageContext, partition: i32) -> String {
    let group = &context.names.application_id;
    format!(
        "read the committed offsets of partition {partition} in group {group} (an open transaction on them holds the \
         answer back{HANGING})"
    )
}

/// A state folder that can't be used at all.
pub(super) fn store_failure(stage: &str, error: &StoreError) -> Failure {
    let mend = match error.in_use {
        true => "; stop that one, or give this process a --state-dir of its own",
        false => "; check the disk and the --state-dir",
    };
    Failure::new(format!("stage {stage}: {}{mend}", chain(error)))
}

/// Logs what an operator should know.
pub(super) fn warn(context: &StageContext, partition: i32, warning: &Warning) {
    let stage = context.info.name;
    match warning {
        Warning::NewInputs(inputs) => {
            for input in inputs {
                let topic = stamped(context, *input);
                if context.info.extractor.is_some() {
                    tracing::info!(
                        stage,
                        partition,
                        topic,
                        "nothing is committed for this topic yet, but for others: it is new to the stage"
                    );
                    continue;
                }
                tracing::warn!(
                    stage,
                    partition,
                    topic,
                    "no offset is committed for this input, but for others: it is new to the stage and starts at its {:?} record",
                    context.info.start
                );
            }
        }
        Warning::StoreRebuilt { error } => {
            tracing::warn!(stage, partition, "the store failed and is wiped and restored: {error}");
        }
        Warning::StateAdded => tracing::warn!(
            stage,
            partition,
            "the committed offsets are of a version of this stage without state: its state begins empty"
        ),
        Warning::Anew { why } => {
            names::rebuilds(stage, partition).increment(1);
            tracing::warn!(stage, partition, "the task starts anew: {why}");
        }
    }
}

/// The name of a task's input, or of a token's lease.
fn stamped(context: &StageContext, input: usize) -> &str {
    context.names.stamped().nth(input).map_or("-", |topic| topic)
}

/// What stops the process, from the state machine.
pub(super) fn failure(context: &StageContext, partition: i32, why: &Stop) -> Failure {
    let stage = context.info.name;
    let application_id = &context.names.application_id;
    Failure::new(match why {
        Stop::OutOfRange { input, offset, range: InputRange { low, high, .. } } => format!(
            "stage {stage}: the committed offset {offset} of {}/{partition} lies outside of the partition, which \
             holds {low} to {high}: records were deleted before they were read, or the topic was made anew; decide \
             whether to go on without them, and use `reset` to set the offsets of group {application_id}",
            stamped(context, *input)
        ),
        Stop::StateWithoutOffsets if context.info.extractor.is_some() => format!(
            "stage {stage}: token {partition} has cursors in changelog {} but group {application_id} has no committed \
             offset for it: its offsets have expired or were deleted, and it can't be told whether the cursors are the last \
             ones; use `reset` to begin without cursors",
            context.names.changelog.as_deref().unwrap_or("-")
        ),
        Stop::StateWithoutOffsets => format!(
            "stage {stage}: partition {partition} has state in changelog {} but group {application_id} has no \
             committed offset for it: its offsets have expired or were deleted, and reading from the start would \
             count everything twice; use `reset` to begin with empty state",
            context.names.changelog.as_deref().unwrap_or("-")
        ),
        Stop::OtherChangelog { named } => format!(
            "stage {stage}: the committed offsets of partition {partition} belong to changelog id {named}, but {} \
             has another id: it was deleted and made anew, and its state is gone; use `reset` to begin with empty \
             state",
            context.names.changelog.as_deref().unwrap_or("-")
        ),
        Stop::Resetting => format!(
            "stage {stage}: a `reset` was begun and not finished; run it again to its end before starting"
        ),
        Stop::Store { error } => format!(
            "stage {stage}: the store of partition {partition} failed again after it was restored: {error}; check \
             the disk and the --state-dir"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{Described, SESSIONS};
    use crate::runtime::testing::{Cluster, context, limits, record, seen};

    static STAGE: Described = Described(&SESSIONS);

    /// S8.3a: nothing is committed where the process stops, so what stops it counts as it happens.
    #[test]
    fn a_record_that_stops_the_process_counts_at_once_and_an_error_of_user_code_does_not() {
        let context = context(&STAGE, &Cluster::default(), limits());
        let counted = |kind: FailureKind| {
            let error: BoxError = "as the test says".into();
            let failed = || record_failure(&context, &record(7, b"a", None), &kind, &error);
            let (failure, seen) = seen(failed);
            assert!(failure.message.contains("offset 7"), "{}", failure.message);
            seen.of("flechtwerk_invalid_records_total").to_vec()
        };
        for part in [RecordPart::Key, RecordPart::Value] {
            assert_eq!(counted(FailureKind::Decode(part)), [1.0]);
            assert_eq!(counted(FailureKind::Undecided(part)), [1.0]);
        }
        assert_eq!(counted(FailureKind::User), [0.0; 0]);
    }
}
