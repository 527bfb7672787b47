//! One transaction against a cluster that answers as a test says: what becomes of it by each answer.

use super::*;
use crate::demo::{COUNT, Described, ENRICH, POLL};
use crate::glue::AnyStage;
use crate::runtime::context::Limits;
use crate::runtime::testing::{Cluster, LONG, context, error, limits};

static COUNTS: Described = Described(&COUNT);
static ENRICHES: Described = Described(&ENRICH);
static POLLS: Described = Described(&POLL);

/// What is known of requests before the transaction begins: some have been lost by and by.
const BEFORE: Unanswered =
    Unanswered { lost_txn: 2, open_txn: 0, lost_produce: 2, open_produce: 0, sent_end_txn: 3 };
/// The end was sent.
const SENT: Unanswered = Unanswered { sent_end_txn: 4, ..BEFORE };
const LOST_TXN: Unanswered = Unanswered { lost_txn: 3, ..BEFORE };
const OPEN_TXN: Unanswered = Unanswered { open_txn: 1, ..BEFORE };
const LOST_PRODUCE: Unanswered = Unanswered { lost_produce: 3, ..BEFORE };
const OPEN_PRODUCE: Unanswered = Unanswered { open_produce: 1, ..BEFORE };

struct Sending {
    cluster: Cluster,
    stage: &'static dyn AnyStage,
    limits: Limits,
    cancel: Cancel,
    unknown: Option<Instant>,
    outputs: Outputs,
    changes: Vec<ChangelogRecord>,
    page: Option<&'static str>,
}

impl Sending {
    fn new() -> Sending {
        let cluster = Cluster::default();
        cluster.inside().unanswered = BEFORE;
        let change = ChangelogRecord { key: b"\0a"[..].into(), value: None };
        Sending {
            cluster,
            stage: &COUNTS,
            limits: limits(),
            cancel: Cancel::default(),
            unknown: None,
            outputs: output(0),
            changes: vec![change],
            page: None,
        }
    }

    /// A commit that fails like this, behind which this is known.
    fn failing(with: ErrorKind, behind: Unanswered) -> Sending {
        let sending = Sending::new();
        sending.cluster.fail("commit", [error(with)]);
        sending.cluster.behind("commit", behind);
        sending
    }

    fn send(&mut self) -> Result<Outcome, String> {
        let context = context(self.stage, &self.cluster, self.limits);
        let mut producer = self.cluster.producer();
        let stamp = Stamp { owner: "a".into(), counter: 1, changelog: None };
        let transaction = Transaction {
            partition: 0,
            outputs: &self.outputs,
            changes: &self.changes,
            positions: &[7],
            stamp: &stamp,
            page: self.page,
        };
        send(&context, &mut *producer, &transaction, &self.cancel, &mut self.unknown)
            .map_err(|failure| failure.message)
    }
}

fn output(input: u16) -> Outputs {
    let record = OutputRecord {
        topic: 0,
        key: None,
        value: None,
        timestamp: 12,
        partition: None,
        headers: Default::default(),
        cause: Cause { input, partition: 3, offset: 17 },
    };
    Outputs { records: vec![record], ..Outputs::default() }
}

fn dead(fenced: bool) -> Outcome {
    Outcome::Dead { fenced, error: String::new() }
}

fn unknown(fenced: bool) -> Outcome {
    Outcome::Unknown { fenced, error: String::new() }
}

fn aborted(suspect: bool) -> Outcome {
    Outcome::Aborted { why: Abort::Other(String::new()), suspect }
}

/// An outcome without the words of its error.
fn wordless(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Dead { fenced, .. } => dead(fenced),
        Outcome::Unknown { fenced, .. } => unknown(fenced),
        Outcome::Aborted { why: Abort::Other(_), suspect } => aborted(suspect),
        other => other,
    }
}

/// S3.1, S3.5
#[test]
fn offsets_go_first_then_outputs_and_changes_and_then_the_end() {
    let mut sending = Sending::new();
    assert_eq!(sending.send(), Ok(Outcome::Committed { suspect: false }));
    let expected = [
        "begin",
        "send_offsets words/0 7 a:1:- 1s",
        "produce 1 counts",
        "produce_changelog 1 demo-count-changelog/0",
        "commit 200ms",
    ];
    assert_eq!(sending.cluster.calls(), expected);
    // Without a change of state nothing is asked of the changelog.
    sending.changes.clear();
    sending.send().unwrap();
    assert_eq!(sending.cluster.count("produce_changelog"), 0);
    // Nor where there is none.
    let mut sending = Sending { stage: &ENRICHES, ..Sending::new() };
    sending.send().unwrap();
    assert_eq!(sending.cluster.count("produce_changelog"), 0);
}

/// S3.7: only the end of a transaction that may have been sent leaves its outcome open.
#[test]
fn a_producer_that_dies_leaves_an_unknown_outcome_only_if_the_end_may_have_been_sent() {
    for (kind, behind, expected) in [
        (ErrorKind::Fatal, BEFORE, dead(false)),
        (ErrorKind::Fenced, BEFORE, dead(true)),
        (ErrorKind::Fatal, SENT, unknown(false)),
        (ErrorKind::Fenced, SENT, unknown(true)),
        (ErrorKind::Fatal, OPEN_TXN, unknown(false)),
        (ErrorKind::Fatal, LOST_PRODUCE, dead(false)),
    ] {
        let mut sending = Sending::failing(kind, behind);
        assert_eq!(sending.send().map(wordless), Ok(expected), "{kind:?} {behind:?}");
        assert_eq!(sending.cluster.count("abort"), 0, "a dead producer aborts nothing");
    }
}

/// S3.7: a request that was never answered may reach the broker late, and join the next transaction.
#[test]
fn a_producer_with_an_unanswered_request_is_suspect() {
    for (behind, expected) in [
        (BEFORE, false),
        (SENT, false),
        (LOST_TXN, true),
        (OPEN_TXN, true),
        // What was committed had all its records.
        (LOST_PRODUCE, false),
        (OPEN_PRODUCE, false),
    ] {
        let mut sending = Sending::new();
        sending.cluster.behind("commit", behind);
        assert_eq!(sending.send(), Ok(Outcome::Committed { suspect: expected }), "{behind:?}");
    }
    for (behind, after_abort, expected) in [
        (BEFORE, BEFORE, aborted(false)),
        (SENT, SENT, aborted(false)),
        (LOST_TXN, LOST_TXN, aborted(true)),
        (OPEN_TXN, BEFORE, aborted(true)),
        (LOST_PRODUCE, LOST_PRODUCE, aborted(true)),
        (OPEN_PRODUCE, BEFORE, aborted(true)),
        (BEFORE, LOST_TXN, aborted(true)),
        (BEFORE, OPEN_PRODUCE, aborted(true)),
        (SENT, Unanswered { lost_txn: 3, ..SENT }, unknown(false)),
    ] {
        let mut sending = Sending::failing(ErrorKind::Abortable, behind);
        sending.cluster.behind("abort", after_abort);
        assert_eq!(sending.send().map(wordless), Ok(expected), "{behind:?} {after_abort:?}");
    }
}

#[test]
fn an_abort_that_fails_ends_the_producer() {
    for (kind, behind, expected) in [
        (ErrorKind::Fatal, BEFORE, dead(false)),
        (ErrorKind::Fenced, BEFORE, dead(true)),
        (ErrorKind::TimedOut, SENT, unknown(false)),
        (ErrorKind::Fenced, SENT, unknown(true)),
    ] {
        let mut sending = Sending::failing(ErrorKind::Abortable, behind);
        sending.cluster.fail("abort", [error(kind)]);
        assert_eq!(sending.send().map(wordless), Ok(expected), "{kind:?} {behind:?}");
    }
}

/// S5.2
#[test]
fn a_group_that_moves_on_is_no_failure_of_the_batch() {
    let mut sending = Sending::new();
    sending.cluster.fail("send_offsets", [error(ErrorKind::Generation)]);
    assert_eq!(sending.send(), Ok(Outcome::Aborted { why: Abort::Generation, suspect: false }));
    assert_eq!(sending.cluster.calls()[2..], ["abort 5s"], "nothing is produced");
}

#[test]
fn the_same_call_again_while_the_client_asks_for_it() {
    let passing = [error(ErrorKind::TimedOut), error(ErrorKind::Retriable)];
    let mut sending = Sending::new();
    sending.cluster.fail("send_offsets", passing.clone());
    sending.cluster.fail("commit", passing.clone());
    assert_eq!(sending.send(), Ok(Outcome::Committed { suspect: false }));
    assert_eq!(sending.cluster.count("send_offsets"), 3);
    assert_eq!(sending.cluster.count("commit"), 3);
    // Not where an abort is asked for.
    let mut sending = Sending::failing(ErrorKind::Abortable, BEFORE);
    assert_eq!(sending.send().map(wordless), Ok(aborted(false)));
    assert_eq!(sending.cluster.count("commit"), 1);
    // Not when the time is up, nor when the task is over.
    for kind in [ErrorKind::TimedOut, ErrorKind::Retriable] {
        let mut sending = Sending::failing(kind, SENT);
        sending.limits.broker_timeout = Duration::ZERO;
        assert_eq!(sending.send().map(wordless), Ok(unknown(false)));
        assert_eq!(sending.cluster.count("commit"), 1);
        let mut sending = Sending::failing(kind, SENT);
        sending.cancel.cancel();
        assert_eq!(sending.send().map(wordless), Ok(unknown(false)));
        assert_eq!(sending.cluster.count("commit"), 1);
    }
}

/// S6.2: a topic may be new to a broker, but not for ever.
#[test]
fn a_topic_that_is_not_known_is_waited_for() {
    let not_known = || BrokerError { code: "UNKNOWN_TOPIC_OR_PART".into(), ..error(ErrorKind::Hopeless) };
    let mut sending = Sending::new();
    sending.cluster.fail("produce", [not_known()]);
    assert_eq!(sending.send().map(wordless), Ok(aborted(false)));
    assert!(sending.unknown.is_some(), "from now on");
    sending.send().unwrap();
    assert_eq!(sending.unknown, None, "it is known again");
    // A transaction that fails for another reason has not met it, one that the group refused has not come to it.
    for (kind, kept) in
        [(ErrorKind::Generation, true), (ErrorKind::Abortable, false), (ErrorKind::Fatal, false)]
    {
        let mut sending = Sending::new();
        sending.unknown = Some(Instant::now());
        sending.cluster.fail("send_offsets", [error(kind)]);
        sending.send().unwrap();
        assert_eq!(sending.unknown.is_some(), kept, "{kind:?}");
    }
    // For too long; and a limit of nothing is over at once.
    let ms = Duration::from_millis;
    let before = Instant::now().checked_sub(ms(2)).unwrap();
    for (since, limit) in [(before, ms(1)), (Instant::now() + LONG, Duration::ZERO)] {
        let mut sending = Sending::new();
        sending.cluster.fail("produce", [not_known()]);
        sending.unknown = Some(since);
        sending.limits.broker_timeout = limit;
        let text = sending.send().unwrap_err();
        assert!(text.contains("stage count: a transaction writes to a topic that is not there"), "{text}");
        assert_eq!(sending.cluster.count("abort"), 1);
    }
}

#[test]
fn another_process_under_the_same_instance_id_stops_this_one() {
    let mut sending = Sending::new();
    sending.cluster.fail("send_offsets", [error(ErrorKind::FencedInstance)]);
    let text = sending.send().unwrap_err();
    assert!(text.contains("another process has joined the group"), "{text}");
    assert_eq!(sending.cluster.count("abort"), 1);
}

/// S6.2: a record that is refused is named, with the place that it comes from.
#[test]
fn what_is_refused_is_named() {
    let refused = |output, size| BrokerError { output, size, ..error(ErrorKind::Hopeless) };
    let text = |sending: &mut Sending, with| {
        sending.cluster.fail("produce", [with]);
        sending.send().unwrap_err()
    };
    let mut sending = Sending::new();
    let said = text(&mut sending, refused(Some(0), Some(99)));
    assert!(
        said.contains("output of 99 bytes to topic counts, made of the record at words/3 offset 17"),
        "{said}"
    );
    sending.outputs = output(Cause::TIMER);
    let said = text(&mut sending, refused(Some(0), None));
    assert!(said.contains("output to topic counts, made by a timer of partition 0, due at 12 ms"), "{said}");
    let said = text(&mut sending, refused(None, Some(99)));
    assert!(
        said.contains("(a changelog record of 99 bytes or the input positions) of words/0 before offset 7"),
        "{said}"
    );
    let mut sending =
        Sending { stage: &POLLS, page: Some("the config at words/0 offset 1"), ..Sending::new() };
    let said = text(&mut sending, refused(Some(0), Some(99)));
    assert!(
        said.contains("a message of 99 bytes to topic alerts, of a page of the config at words/0 offset 1"),
        "{said}"
    );
    let said = text(&mut sending, refused(None, Some(99)));
    assert!(said.contains("refused the cursor of 99 bytes of the config at words/0"), "{said}");
    assert!(said.contains("max.message.bytes of the changelog demo-poll-changelog"), "{said}");
    let said = text(&mut sending, refused(None, None));
    assert!(said.contains("refused a page of the config at words/0"), "{said}");
}

#[test]
fn the_record_that_was_refused_says_more_than_the_commit_that_failed() {
    let refused = BrokerError { output: Some(0), ..error(ErrorKind::Hopeless) };
    let mut sending = Sending::failing(ErrorKind::Abortable, BEFORE);
    sending.cluster.inside().delivery_error = Some(refused.clone());
    let text = sending.send().unwrap_err();
    assert!(text.contains("made of the record at words/3 offset 17"), "{text}");
    // But nothing does of a producer that is fenced: its records fail because of that.
    let mut sending = Sending::failing(ErrorKind::Fenced, BEFORE);
    sending.cluster.inside().delivery_error = Some(refused);
    assert_eq!(sending.send().map(wordless), Ok(dead(true)));
}
