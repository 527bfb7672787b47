//! How often a task sends what can't get through: once more, and then the process stops (S6.2). One transaction that took
//! too long may have been stopped together with its process; two in a row were not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::ClosedBatch;
use super::context::{Cancel, StageContext};
use super::error::Failure;
use super::host;
use crate::duration::duration_text;
use crate::naming::list;
use crate::task::{Abort, Outcome};

/// Time limit of one question to the cluster.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// What a task has seen of its last transactions.
#[derive(Default)]
pub(super) struct Patience {
    /// In a row, those that the broker ended because they took too long.
    overran: u32,
    /// Since when every transaction has failed, and how many.
    failing: Option<(Instant, u32)>,
}

impl Patience {
    /// A full batch must fit into the transaction time-out, or it would be sent and refused for ever (S6.2f).
    pub(super) fn check_duration(
        &mut self,
        context: &StageContext,
        outcome: &Outcome,
        took: Duration,
        batch: &ClosedBatch,
    ) -> Result<(), Failure> {
        let limits = context.limits;
        let fenced =
            matches!(outcome, Outcome::Dead { fenced: true, .. } | Outcome::Unknown { fenced: true, .. });
        self.overran = if fenced && took >= limits.transaction_timeout { self.overran + 1 } else { 0 };
        if self.overran < 2 {
            return Ok(());
        }
        let records = batch.records;
        if let Some(page) = &batch.page {
            return Err(Failure::new(format!(
                "stage {}: the transaction of a page of {page} took {}, longer than transaction_timeout ({}), and so the \
                 broker ended it; raise --transaction-timeout, or fetch less in one page",
                context.info.name,
                duration_text(took),
                duration_text(limits.transaction_timeout),
            )));
        }
        Err(Failure::new(format!(
            "stage {}: a transaction of {records} input records took {}, longer than transaction_timeout ({}), and so \
             the broker ended it; raise --transaction-timeout, or lower --max-poll-records ({})",
            context.info.name,
            duration_text(took),
            duration_text(limits.transaction_timeout),
            limits.max_poll_records
        )))
    }

    /// What can't be sent within `broker_timeout` can't for a reason: a topic is gone, a partition has no leader, or
    /// the brokers can't be reached. It takes one long attempt and one more, or many short ones. How it fails makes no
    /// difference: where the coordinator is well and a partition is not, records expire and the abort succeeds, or the
    /// broker ends the transaction first. Topics that are not known have a clock of their own.
    pub(super) fn check_progress(
        &mut self,
        context: &StageContext,
        partition: i32,
        outcome: &Outcome,
        took: Duration,
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        let limit = context.limits.broker_timeout;
        let overran = took >= context.limits.transaction_timeout;
        let error = match outcome {
            Outcome::Dead { error, fenced } | Outcome::Unknown { error, fenced } if overran || !fenced => {
                error
            }
            Outcome::Aborted { why: Abort::Other(error), .. } => error,
            // No failure, and none that is over: the group has moved on before anything was produced.
            Outcome::Aborted { why: Abort::Generation, .. } => return Ok(()),
            // It got through, or another owner has come, of which the wait for an assignment takes care (S4.7).
            Outcome::Committed { .. } | Outcome::Dead { .. } | Outcome::Unknown { .. } => {
                self.failing = None;
                return Ok(());
            }
        };
        if cancel.is_cancelled() {
            return Ok(());
        }
        let now = host::now();
        let (since, count) = self.failing.unwrap_or((now.checked_sub(took).unwrap_or(now), 0));
        self.failing = Some((since, count + 1));
        if count == 0 || host::since(since) < limit {
            return Ok(());
        }
        let changelog = context.changelog.as_ref().map(|changelog| &changelog.topic);
        let is_gone = |topic: &&Arc<str>| {
            context.inputs.topic_id(topic, ASK_LIMIT).is_err_and(|error| error.is_unknown_topic())
        };
        let gone: Vec<&Arc<str>> = context.names.outputs.iter().chain(changelog).filter(is_gone).collect();
        let why = match gone.is_empty() {
            true => "see whether the brokers are up and can be reached, and whether all partitions of its outputs and of \
                     its changelog have a leader and enough in-sync replicas (min.insync.replicas), then start again"
                .to_owned(),
            false => format!(
                "{} was there when this process started, so somebody has deleted it; `check` says what to do",
                list(&gone)
            ),
        };
        Err(Failure::new(format!(
            "stage {}: could not send a transaction of partition {partition} within --broker-timeout ({}): {error}; {why}",
            context.info.name,
            duration_text(limit)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{COUNT, Described};
    use crate::port::{BrokerError, ErrorKind};
    use crate::runtime::context::Limits;
    use crate::runtime::testing::{Cluster, LONG, context, error, limits};

    static COUNTS: Described = Described(&COUNT);
    const OVER: Duration = Duration::from_secs(10);

    fn dead(fenced: bool) -> Outcome {
        Outcome::Dead { fenced, error: "as the test says".into() }
    }

    fn unknown(fenced: bool) -> Outcome {
        Outcome::Unknown { fenced, error: "as the test says".into() }
    }

    fn aborted(why: Abort) -> Outcome {
        Outcome::Aborted { why, suspect: false }
    }

    fn expired() -> Outcome {
        aborted(Abort::Other("as the test says".into()))
    }

    fn context_of(cluster: &Cluster, broker_timeout: Duration) -> StageContext {
        context(&COUNTS, cluster, Limits { broker_timeout, transaction_timeout: OVER, ..limits() })
    }

    /// S6.2f
    #[test]
    fn two_transactions_in_a_row_that_took_too_long_are_enough() {
        let context = context_of(&Cluster::default(), LONG);
        let short = OVER - Duration::from_nanos(1);
        let batch = ClosedBatch { records: 7, ..ClosedBatch::default() };
        let page =
            ClosedBatch { page: Some("the config at words/0 offset 1".into()), ..ClosedBatch::default() };
        let mut patience = Patience::default();
        let mut check = |outcome: &Outcome, took, batch: &ClosedBatch| {
            patience.check_duration(&context, outcome, took, batch).map_err(|failure| failure.message)
        };
        // Only what the broker has ended counts, only if that took so long, and only in a row.
        for _ in 0..3 {
            assert_eq!(check(&dead(true), short, &batch), Ok(()));
            assert_eq!(check(&dead(false), OVER, &batch), Ok(()));
            assert_eq!(check(&Outcome::Committed { suspect: false }, OVER, &batch), Ok(()));
            assert_eq!(check(&dead(true), OVER, &batch), Ok(()));
        }
        let text = check(&unknown(true), OVER, &batch).unwrap_err();
        for part in ["of 7 input records took 10s", "transaction_timeout (10s)", "--max-poll-records (5)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = check(&dead(true), OVER, &page).unwrap_err();
        assert!(text.contains("of a page of the config at words/0 offset 1 took 10s"), "{text}");
    }

    fn check(
        patience: &mut Patience,
        context: &StageContext,
        outcome: &Outcome,
        took: Duration,
    ) -> Option<String> {
        let checked = patience.check_progress(context, 3, outcome, took, &Cancel::default());
        checked.err().map(|failure| failure.message)
    }

    /// S6.2
    #[test]
    fn what_cannot_be_sent_within_the_broker_timeout_stops_the_process() {
        let cluster = Cluster::default();
        // One long attempt and one more.
        let (context, mut patience) = (context_of(&cluster, OVER), Patience::default());
        assert_eq!(check(&mut patience, &context, &unknown(false), OVER), None);
        let text = check(&mut patience, &context, &dead(false), Duration::ZERO).unwrap();
        for part in
            ["stage count", "of partition 3 within --broker-timeout (10s): as the test says; see whether"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Many short ones are nothing yet.
        let (context, mut patience) = (context_of(&cluster, LONG), Patience::default());
        for _ in 0..5 {
            assert_eq!(check(&mut patience, &context, &dead(false), Duration::ZERO), None);
        }
        // Not the first, however long it took.
        let (context, mut patience) = (context_of(&cluster, Duration::ZERO), Patience::default());
        assert_eq!(check(&mut patience, &context, &dead(false), OVER), None);
        // What succeeds or is ended by another owner is no part of it.
        let short = OVER - Duration::from_nanos(1);
        for other in [Outcome::Committed { suspect: false }, dead(true), unknown(true)] {
            assert_eq!(check(&mut patience, &context, &other, short), None);
            assert_eq!(check(&mut patience, &context, &dead(false), OVER), None);
        }
        // A limit of nothing is over at once.
        patience.failing = Some((host::now() + LONG, 1));
        assert!(check(&mut patience, &context, &dead(false), Duration::ZERO).is_some());
        // A task that is over has no more to tell.
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(patience.check_progress(&context, 3, &dead(false), OVER, &cancel).is_ok());
    }

    /// S6.2g: where a partition has no leader and the coordinator is well, each abort succeeds, or the broker ends the transaction.
    #[test]
    fn transactions_that_keep_aborting_stop_the_process() {
        let cluster = Cluster::default();
        let ways = [expired(), dead(false), unknown(false), dead(true), unknown(true)];
        for (first, second) in ways.iter().flat_map(|first| ways.iter().map(move |second| (first, second))) {
            let (context, mut patience) = (context_of(&cluster, OVER), Patience::default());
            assert_eq!(check(&mut patience, &context, first, OVER), None, "it is sent again: {first:?}");
            // The group moved on in between, which is no failure and mends none.
            assert_eq!(check(&mut patience, &context, &aborted(Abort::Generation), OVER), None);
            let text = check(&mut patience, &context, second, OVER);
            let text = text.unwrap_or_else(|| panic!("{first:?} and {second:?}"));
            for part in ["as the test says", "of its outputs and of its changelog have a leader"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        // However often the group moves on.
        let (context, mut patience) = (context_of(&cluster, Duration::ZERO), Patience::default());
        for _ in 0..5 {
            assert_eq!(check(&mut patience, &context, &aborted(Abort::Generation), OVER), None);
        }
        // Many short ones are nothing yet.
        let (context, mut patience) = (context_of(&cluster, LONG), Patience::default());
        for _ in 0..5 {
            assert_eq!(check(&mut patience, &context, &expired(), Duration::ZERO), None);
        }
        // One that got through is the end of it.
        let (context, mut patience) = (context_of(&cluster, Duration::ZERO), Patience::default());
        for _ in 0..5 {
            assert_eq!(check(&mut patience, &context, &expired(), OVER), None);
            assert_eq!(check(&mut patience, &context, &Outcome::Committed { suspect: false }, OVER), None);
        }
    }

    #[test]
    fn topics_that_are_gone_are_named() {
        let cluster = Cluster::default();
        let gone = || BrokerError { code: "UNKNOWN_TOPIC_OR_PART".into(), ..error(ErrorKind::Hopeless) };
        let context = context_of(&cluster, Duration::ZERO);
        for (answers, named) in [(vec![gone()], "`counts`"), (vec![gone(), gone()], "demo-count-changelog")] {
            cluster.fail("topic_id", answers);
            let mut patience = Patience::default();
            assert_eq!(check(&mut patience, &context, &dead(false), OVER), None);
            let text = check(&mut patience, &context, &dead(false), OVER).unwrap();
            assert!(text.contains(named) && text.contains("somebody has deleted"), "{text}");
        }
    }
}
