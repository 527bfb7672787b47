//! The fence: from it on no earlier owner of the task can write.

use std::time::Duration;

use super::{ASK_LIMIT, Thread, positions};
use crate::observe::names;
use crate::port::ErrorKind;
use crate::runtime::context::Cancel;
use crate::runtime::error::Failure;
use crate::runtime::host;
use crate::task::Event;

/// A fence that takes no longer is nothing to speak of: the coordinator is just made, moves, or still ends a transaction.
const FENCE_QUIET: Duration = Duration::from_secs(10);

impl Thread {
    /// Fences in short attempts with a fresh producer each: over an open transaction the client would wait for
    /// half a second otherwise. No attempt is made once the fence is unwanted: the assignment that asked for it is no
    /// longer current, and it would shut out the next owner (S4.7).
    pub(super) fn fence(&mut self, unwanted: &Cancel) -> Result<(), Failure> {
        self.producer = None;
        let context = self.context.clone();
        if flawed!(PositionsBeforeFence) {
            self.early = context.group.committed(&self.inputs, ASK_LIMIT).ok().map(positions);
        }
        let mut transactional_id = context.names.transactional_id(self.partition);
        if flawed!(RandomTransactionalId) {
            transactional_id += &format!("-{}", host::random());
        }
        let warm_up = &context.names.leases[0];
        let until = host::now() + context.limits.broker_timeout;
        let mut limit = Duration::from_millis(100);
        let mut said = host::now();
        loop {
            if self.cancel.is_cancelled() || unwanted.is_cancelled() {
                return Ok(());
            }
            let result = context.producers.create(&transactional_id, warm_up).and_then(|mut producer| {
                crash_point!(BeforeFence);
                producer.fence(limit)?;
                crash_point!(AfterFence);
                Ok(producer)
            });
            match result {
                Ok(_) if unwanted.is_cancelled() => return Ok(()),
                Ok(producer) => {
                    self.producer = Some(producer);
                    names::fences(context.info.name, self.partition).increment(1);
                    let name = if flawed!(StampWithoutOwner) { 0 } else { host::random() };
                    self.report(Event::Fenced { owner: format!("{name:016x}") });
                    return Ok(());
                }
                Err(error) => match error.kind {
                    ErrorKind::Retriable | ErrorKind::TimedOut | ErrorKind::Abortable | ErrorKind::Fatal
                        if host::now() < until =>
                    {
                        tracing::debug!(
                            stage = context.info.name,
                            partition = self.partition,
                            "fencing again: {error}"
                        );
                        if host::since(said) >= FENCE_QUIET {
                            said = host::now();
                            tracing::warn!(
                                stage = context.info.name,
                                partition = self.partition,
                                "the previous owner can't be fenced yet, trying on: {error}"
                            );
                        }
                        limit = (limit * 2).min(Duration::from_secs(5));
                        host::sleep(Duration::from_millis(10));
                    }
                    ErrorKind::Fenced => {
                        self.report(Event::FenceLost { error: error.to_string() });
                        return Ok(());
                    }
                    _ => return Err(Failure::broker(context.info.name, "fence the previous owner", &error)),
                },
            }
        }
    }
}
