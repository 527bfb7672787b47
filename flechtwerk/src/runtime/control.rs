//! What tasks and tokens have in common beside their state machine: what they are told, and how their threads begin and
//! end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::context::StageContext;
use super::error::Failure;
use super::host;
use super::stage::Notices;
use super::worker::{Report, Worker};
use crate::task::Event;

/// After a failure, a commit in flight is awaited this long (S6.1).
const HALT_LIMIT: Duration = Duration::from_secs(10);
/// A worker thread that takes longer to end is left behind.
const WORKER_LIMIT: Duration = Duration::from_secs(10);

/// What a stage tells its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Assigned { mine: bool },
    Revoked,
    Lost,
    Stop,
    Halt,
}

impl Control {
    /// How long what is in flight may still take.
    pub(super) fn limit(self, context: &StageContext) -> Option<Duration> {
        match self {
            Control::Assigned { mine: false } => Some(context.limits.revoke_timeout),
            Control::Halt => Some(HALT_LIMIT),
            _ => None,
        }
    }

    /// As the state machine is told.
    pub(super) fn event(self) -> Event {
        match self {
            Control::Assigned { mine } => Event::Assigned { mine },
            Control::Revoked => Event::Revoked,
            Control::Lost => Event::Lost,
            Control::Stop => Event::Stop,
            Control::Halt => Event::Halt,
        }
    }
}

/// Starts the thread of a task or token; one that can't be started stops the process.
pub(super) fn start_worker(
    context: &Arc<StageContext>,
    partition: i32,
    reports: UnboundedSender<Report>,
    notices: &Notices,
) -> Option<Worker> {
    match Worker::start(context.clone(), partition, reports) {
        Ok(worker) => Some(worker),
        Err(error) => {
            let stage = context.info.name;
            notices.failed(Failure::new(format!(
                "stage {stage}: can't start a thread for partition {partition}: {error}"
            )));
            None
        }
    }
}

/// The thread is gone before its time.
pub(super) fn thread_died(context: &StageContext, partition: i32) -> Failure {
    let stage = context.info.name;
    Failure::new(format!(
        "stage {stage}: the thread of partition {partition} died of an error in Flechtwerk itself; please report it with \
         the panic message above"
    ))
}

/// Waits until the thread has ended, but not for ever.
pub(super) async fn end_worker(
    context: &StageContext,
    partition: i32,
    reports: &mut UnboundedReceiver<Report>,
) {
    let limit = host::sleep_until(host::now() + WORKER_LIMIT);
    tokio::pin!(limit);
    loop {
        tokio::select! {
            report = reports.recv() => if matches!(report, Some(Report::Gone) | None) { break },
            () = &mut limit => {
                tracing::warn!(stage = context.info.name, partition, "the task's thread has not ended in time and is left behind");
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::Limits;
    use super::super::testing::{Cluster, LONG, context, limits};
    use super::*;
    use crate::demo::{COUNT, Described};

    static COUNTS: Described = Described(&COUNT);

    /// S5.1c, S6.1c
    #[test]
    fn what_is_in_flight_has_a_limit_of_its_own_for_each_end() {
        let revoke_timeout = Duration::from_millis(1_234);
        let context = context(&COUNTS, &Cluster::default(), Limits { revoke_timeout, ..limits() });
        assert!(revoke_timeout < LONG);
        for (control, limit) in [
            (Control::Assigned { mine: false }, Some(revoke_timeout)),
            (Control::Halt, Some(Duration::from_secs(10))),
            // A clean stop has the time of the process, and the rest ends nothing, or at once.
            (Control::Stop, None),
            (Control::Assigned { mine: true }, None),
            (Control::Revoked, None),
            (Control::Lost, None),
        ] {
            assert_eq!(control.limit(&context), limit, "{control:?}");
        }
    }
}
