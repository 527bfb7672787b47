//! When a task looks again though nothing has woken it.

use std::time::Instant;

use super::{FALLBACK_POLL, Task};
use crate::runtime::host;

impl Task {
    /// When to look again even if nothing happens.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let may_close = self.running.is_none() && self.machine.may_compute();
        let waits = may_close && !self.building.is_empty() && self.machine.may_send();
        let due = self.commit_due().filter(|_| waits);
        let idle = self.moved.filter(|_| may_close).map(|since| since + self.context.limits.idle_commit);
        let poll = self.may_take().then(|| host::now() + FALLBACK_POLL);
        let timer = poll.and_then(|_| self.next_timer_at());
        [self.wait_until, self.end_until, due, idle, poll, timer].into_iter().flatten().min()
    }

    /// When the next commit may start; `None`: at once, there was none before.
    pub(super) fn commit_due(&self) -> Option<Instant> {
        self.last_commit.map(|last| last + self.context.limits.commit_interval)
    }
}
