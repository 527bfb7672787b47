//! One transaction: outputs, changelog records and input positions, all or nothing (S3.1).
//!
//! The transaction is open only from its first request to EndTxn (S3.5). What can't be told from the answers is
//! left to the stamps (S3.7).

use std::time::{Duration, Instant};

use super::context::{Cancel, StageContext};
use super::error::Failure;
use super::host;
use crate::duration::duration_text;
use crate::format::ChangelogRecord;
use crate::glue::{Cause, OutputRecord, Outputs};
use crate::partitioner::partition_of;
use crate::port::{BrokerError, ErrorKind, OffsetCommit, Producer, Unanswered};
use crate::task::{Abort, Outcome, Stamp};

/// One slice of a commit; between slices the producer's events are served and a stop is noticed.
const COMMIT_SLICE: Duration = Duration::from_millis(200);
/// An abort that takes longer is given up together with its producer.
const ABORT_LIMIT: Duration = Duration::from_secs(5);

/// What goes into a transaction.
pub(super) struct Transaction<'a> {
    pub(super) partition: i32,
    pub(super) outputs: &'a Outputs,
    pub(super) changes: &'a [ChangelogRecord],
    pub(super) positions: &'a [i64],
    pub(super) stamp: &'a Stamp,
    /// Of an extractor's page: where its config lies.
    pub(super) page: Option<&'a str>,
}

/// Sends it and says what became of it; an error stops the process. `unknown`: since when a topic has not been known.
pub(super) fn send(
    context: &StageContext,
    producer: &mut dyn Producer,
    transaction: &Transaction<'_>,
    cancel: &Cancel,
    unknown: &mut Option<Instant>,
) -> Result<Outcome, Failure> {
    let before = producer.unanswered();
    let Err(error) = attempt(context, producer, transaction, cancel) else {
        crash_point!(AfterEndTxn);
        *unknown = None;
        return Ok(Outcome::Committed { suspect: is_suspect(before, producer.unanswered(), false) });
    };
    let end_txn_sent = producer.unanswered().sent_end_txn > before.sent_end_txn;
    // The checks of the start have seen every topic, so one that a broker does not know may be known to it in a moment.
    let since = error.is_unknown_topic().then(|| *unknown.get_or_insert_with(host::now));
    // A group that moves on is noticed before anything is produced, and says nothing of topics.
    if since.is_none() && error.kind != ErrorKind::Generation {
        *unknown = None;
    }
    match error.kind {
        ErrorKind::Hopeless
            if since.is_some_and(|since| host::since(since) < context.limits.broker_timeout) =>
        {
            Ok(abort(producer, &error, before, end_txn_sent))
        }
        ErrorKind::Hopeless => {
            let _ = producer.abort(ABORT_LIMIT);
            Err(explain(context, transaction, &error))
        }
        ErrorKind::FencedInstance => {
            let _ = producer.abort(ABORT_LIMIT);
            Err(super::stage::instance_fenced(context, &error))
        }
        ErrorKind::Abortable | ErrorKind::Generation => Ok(abort(producer, &error, before, end_txn_sent)),
        ErrorKind::Fenced | ErrorKind::Fatal | ErrorKind::TimedOut | ErrorKind::Retriable => {
            let fenced = error.kind == ErrorKind::Fenced;
            let open = producer.unanswered().open_txn > 0;
            let error = error.to_string();
            Ok(match end_txn_sent || open {
                true => Outcome::Unknown { fenced, error },
                false => Outcome::Dead { fenced, error },
            })
        }
    }
}

/// Begin, offsets, produce, commit.
fn attempt(
    context: &StageContext,
    producer: &mut dyn Producer,
    transaction: &Transaction<'_>,
    cancel: &Cancel,
) -> Result<(), BrokerError> {
    crash_point!(BeforeBegin);
    producer.begin()?;
    crash_point!(AfterBegin);
    let metadata = transaction.stamp.to_string();
    let offsets: Vec<OffsetCommit> = context
        .input_partitions(transaction.partition)
        .into_iter()
        .zip(transaction.positions)
        .map(|(at, offset)| OffsetCommit { at, offset: *offset, metadata: metadata.clone() })
        .collect();
    let until = host::now() + context.limits.broker_timeout;
    // The offsets go first. While the coordinator still ends the previous transaction it refuses both requests that
    // begin the next one; the client repeats this one after a millisecond, that of a produce only after twenty. And
    // a group that has moved on is noticed before anything is produced.
    repeat(cancel, until, || producer.send_offsets(&offsets, &*context.group, COMMIT_SLICE * 5))?;
    crash_point!(AfterSendOffsets);
    producer.produce(transaction.outputs, &context.names.outputs)?;
    crash_point!(AfterProduceOutputs);
    if let Some(changelog) = &context.changelog
        && !transaction.changes.is_empty()
    {
        let kept: Vec<ChangelogRecord>;
        let changes = match flawed!(TombstoneDropped) {
            false => transaction.changes,
            true => {
                kept = transaction.changes.iter().filter(|change| change.value.is_some()).cloned().collect();
                &kept
            }
        };
        if flawed!(ChangelogByKey) {
            for change in changes.chunks(1) {
                let partition = partition_of(&change[0].key, changelog.partitions);
                producer.produce_changelog(&changelog.topic, partition, change)?;
            }
        } else {
            producer.produce_changelog(&changelog.topic, transaction.partition, changes)?;
        }
        crash_point!(AfterProduceChangelog);
    }
    let committed = repeat(cancel, until, || producer.commit(COMMIT_SLICE));
    match (committed, producer.delivery_error()) {
        // The delivery error says which record it was; the commit only that something failed.
        (Err(error), Some(delivery)) if error.kind != ErrorKind::Fenced => Err(delivery),
        (result, _) => result,
    }
}

/// The same call again while the client asks for it, until the time is up or the task is over.
fn repeat(
    cancel: &Cancel,
    until: Instant,
    mut call: impl FnMut() -> Result<(), BrokerError>,
) -> Result<(), BrokerError> {
    loop {
        match call() {
            Err(error) if matches!(error.kind, ErrorKind::TimedOut | ErrorKind::Retriable) => {
                if cancel.is_cancelled() || host::now() >= until {
                    return Err(error);
                }
                if error.kind == ErrorKind::Retriable {
                    host::sleep(Duration::from_millis(5));
                }
            }
            result => return result,
        }
    }
}

fn abort(
    producer: &mut dyn Producer,
    error: &BrokerError,
    before: Unanswered,
    end_txn_sent: bool,
) -> Outcome {
    // A Produce that is open when the abort begins may reach the broker late and join the next transaction.
    let open_before = is_suspect(before, producer.unanswered(), true);
    if let Err(failed) = producer.abort(ABORT_LIMIT) {
        let fenced = failed.kind == ErrorKind::Fenced;
        let error = format!("{error}; and the abort failed: {failed}");
        return match end_txn_sent {
            true => Outcome::Unknown { fenced, error },
            false => Outcome::Dead { fenced, error },
        };
    }
    let suspect = open_before || is_suspect(before, producer.unanswered(), true);
    if suspect && end_txn_sent {
        return Outcome::Unknown { fenced: false, error: error.to_string() };
    }
    let why = match error.kind {
        ErrorKind::Generation => Abort::Generation,
        _ => Abort::Other(error.to_string()),
    };
    Outcome::Aborted { why, suspect }
}

/// True if a request was sent since `before` and never answered (S3.7).
fn is_suspect(before: Unanswered, after: Unanswered, aborted: bool) -> bool {
    if flawed!(SuspectGoesOn) {
        return false;
    }
    let transactional = after.lost_txn > before.lost_txn || after.open_txn > 0;
    let produce = after.lost_produce > before.lost_produce || after.open_produce > 0;
    transactional || (aborted && produce)
}

/// Names topic, place of the input and size.
fn explain(context: &StageContext, transaction: &Transaction<'_>, error: &BrokerError) -> Failure {
    let stage = context.info.name;
    let size = error.size.map(|size| format!(" of {size} bytes")).unwrap_or_default();
    let output = error.output.and_then(|index| transaction.outputs.records.get(index));
    if let Some(page) = transaction.page {
        return page_refused(context, page, output, size, error);
    }
    Failure::new(match output {
        _ if error.is_unknown_topic() => format!(
            "stage {stage}: a transaction writes to a topic that is not there, for longer than --broker-timeout ({}): \
             {error}; it was there when this process started, so somebody has deleted it; `check` says what to do",
            duration_text(context.limits.broker_timeout)
        ),
        Some(output) => {
            let topic = &context.names.outputs[usize::from(output.topic)];
            let partition = transaction.partition;
            let origin = match context.names.inputs.get(usize::from(output.cause.input)) {
                Some(input) => {
                    let Cause { partition, offset, .. } = output.cause;
                    format!("made of the record at {input}/{partition} offset {offset}")
                }
                None => {
                    format!("made by a timer of partition {partition}, due at {} ms", output.timestamp)
                }
            };
            format!(
                "stage {stage}: the broker refused an output{size} to topic {topic}, {origin}: {error}; make the output \
                 smaller, or allow larger ones: max.message.bytes of the topic, and -X message.max.bytes for this program",
            )
        }
        None => {
            let place: Vec<String> = context
                .input_partitions(transaction.partition)
                .iter()
                .zip(transaction.positions)
                .map(|(at, offset)| format!("{at} before offset {offset}"))
                .collect();
            format!(
                "stage {stage}: the broker refused a transaction (a changelog record{size} or the input \
                 positions) of {}: {error}",
                place.join(", "),
            )
        }
    })
}

/// The same of an extractor's page, which is made of no record.
fn page_refused(
    context: &StageContext,
    page: &str,
    output: Option<&OutputRecord>,
    size: String,
    error: &BrokerError,
) -> Failure {
    let stage = context.info.name;
    Failure::new(match (output, error.size) {
        (Some(output), _) => {
            let topic = &context.names.outputs[usize::from(output.topic)];
            format!(
                "stage {stage}: the broker refused a message{size} to topic {topic}, of a page of {page}: {error}; make \
                 the message smaller, or allow larger ones: max.message.bytes of the topic, and -X message.max.bytes for \
                 this program"
            )
        }
        (None, Some(_)) => format!(
            "stage {stage}: the broker refused the cursor{size} of {page}: {error}; a cursor is a place in the source, \
             keep no more in it than is needed to go on; or allow larger ones: max.message.bytes of the changelog {}, and \
             -X message.max.bytes for this program",
            context.names.changelog.as_deref().unwrap_or("-")
        ),
        (None, None) => format!("stage {stage}: the broker refused a page of {page}: {error}"),
    })
}

#[cfg(test)]
mod tests;
