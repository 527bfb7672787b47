//! What ends a running pipeline, in words for the person who has to act.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::port::BrokerError;

/// Why a running pipeline stopped: exit status 1 (S6.3).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RunError(pub(crate) String);

/// What stops the process, from a task or a stage.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Names stage, place, reason and mend.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into() }
    }

    /// A call to the cluster that did not succeed within the time limit, or can't.
    pub(crate) fn broker(stage: &str, what: &str, error: &BrokerError) -> Failure {
        Failure::broker_of(&format!("stage {stage}"), what, error)
    }

    /// The same of anybody: `who` begins the message.
    pub(crate) fn broker_of(who: &str, what: &str, error: &BrokerError) -> Failure {
        let deleted = match error.is_unknown_topic() {
            true => {
                "; it was there when this process started, so somebody has deleted it; `check` says what to do"
            }
            false => "",
        };
        Failure::new(format!("{who}: can't {what}: {error}{deleted}"))
    }
}

/// Runs what a thread is for, none of which is user code: a panic is told, or nobody would know that the thread is no more.
pub(crate) fn guarded(who: &str, run: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(Failure::new(format!(
            "{who} died of an error in Flechtwerk itself; please report it with the panic message above"
        )))
    })
}

/// An error and its causes, one after another.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors repeat their cause in their own text.
        if !text.ends_with(&cause_text) {
            let _ = write!(text, ": {cause_text}");
        }
        source = cause.source();
    }
    text
}
