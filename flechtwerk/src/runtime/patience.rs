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
use crate::task::Outcome;

/// Time limit of one question to the cluster.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// What a task has seen of its last transactions.
#[derive(Default)]
pub(super) struct Patience {
    /// In a row, those that the broker ended because they took too long.
    overran: u32,
    /// Since when every transaction has failed, each on a producer of its own, and how many.
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
    /// the brokers can't be reached. It takes one long attempt and one more, or many short ones.
    pub(super) fn check_progress(
        &mut self,
        context: &StageContext,
        partition: i32,
        outcome: &Outcome,
        took: Duration,
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        let limit = context.limits.broker_timeout;
        let (Outcome::Dead { error, fenced: false } | Outcome::Unknown { error, fenced: false }) = outcome
        else {
            self.failing = None;
            return Ok(());
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
                     its changelog have a leader, then start again"
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
