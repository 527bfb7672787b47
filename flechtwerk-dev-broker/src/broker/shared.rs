//! What connections, the ticker and the handle of the broker have in common.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::state::State;
use crate::fault::{Faults, Requests};
use crate::wire::FrameBudget;

/// All requests that are being read and answers that are being written may together take this much memory.
const FRAME_BUDGET: usize = 1024 * 1024 * 1024;

/// The broker behind its handle.
pub(crate) struct Shared {
    state: Mutex<Planned>,
    /// Something is due earlier than the ticker knows.
    sooner: Notify,
    stopped: watch::Sender<bool>,
    /// Which nodes are up, by position.
    up: Vec<watch::Sender<bool>>,
    pub(crate) faults: Faults,
    pub(crate) requests: Requests,
    pub(crate) frames: FrameBudget,
    pub(crate) max_frame: usize,
}

struct Planned {
    state: State,
    /// When the ticker wakes up.
    tick: Instant,
}

impl Shared {
    pub(crate) fn new(state: State) -> Shared {
        let nodes = state.nodes.all().len();
        let requests = Requests::new(state.settings.remembered_requests);
        Shared {
            max_frame: state.settings.max_frame,
            requests,
            faults: Faults::default(),
            frames: FrameBudget::new(FRAME_BUDGET),
            sooner: Notify::new(),
            stopped: watch::Sender::new(false),
            up: (0..nodes).map(|_| watch::Sender::new(true)).collect(),
            state: Mutex::new(Planned { state, tick: Instant::now() }),
        }
    }

    /// Does something with the state, and wakes the ticker if something is due earlier now.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut planned = self.lock();
        let result = work(&mut planned.state);
        let next = planned.state.next_deadline();
        if next < planned.tick {
            planned.tick = next;
            self.sooner.notify_one();
        }
        result
    }

    /// Does something with the state after which nothing is due earlier: what Produce and Fetch do.
    pub(crate) fn with_logs<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.lock().state)
    }

    /// A request that panicked has left the state between two changes at worst; the others go on.
    fn lock(&self) -> MutexGuard<'_, Planned> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what is due, for ever; sleeps in between.
    pub(crate) async fn tick(&self) {
        loop {
            let next = {
                let mut planned = self.lock();
                planned.state.tick();
                planned.tick = planned.state.next_deadline();
                planned.tick
            };
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = self.sooner.notified() => {}
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    pub(crate) async fn stopped(&self) {
        // The sender lives in `self`: there is no error to wait for.
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    pub(crate) fn switch_node(&self, id: i32, up: bool) {
        if let Some(node) = self.node(id) {
            node.send_replace(up);
        }
    }

    pub(crate) fn is_up(&self, id: i32) -> bool {
        self.node(id).is_some_and(|node| *node.borrow())
    }

    pub(crate) async fn down(&self, id: i32) {
        if let Some(node) = self.node(id) {
            let _ = node.subscribe().wait_for(|up| !*up).await;
        }
    }

    fn node(&self, id: i32) -> Option<&watch::Sender<bool>> {
        usize::try_from(id.checked_sub(1)?).ok().and_then(|index| self.up.get(index))
    }

    /// How long the broker has been running.
    pub(crate) fn age(&self) -> Duration {
        self.lock().state.clock.elapsed()
    }
}
