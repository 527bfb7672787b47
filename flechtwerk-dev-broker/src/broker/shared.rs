//! What connections, the ticker and the handle of the broker have in common.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::state::State;
use crate::fault::{Faults, Requests};
use crate::wire::FrameBudget;

/// All requests that are being read and answers that are being written may together take the memory of so many of the longest
/// requests, and this much at least.
const LONGEST_REQUESTS: usize = 10;
const MIN_FRAME_BUDGET: usize = 128 * 1024 * 1024;
/// An answer may be as long as the longest request, and this long at least: one to a Fetch is, whatever requests may be.
const MIN_MAX_ANSWER: usize = 80 * 1024 * 1024;

/// The broker behind its handle.
pub(crate) struct Shared {
    state: Mutex<Planned>,
    /// Something is due earlier than the ticker knows.
    sooner: Notify,
    stopped: watch::Sender<bool>,
    /// Why the broker has ended by itself.
    failure: watch::Sender<Option<String>>,
    /// Which nodes are up, by position.
    up: Vec<watch::Sender<bool>>,
    pub(crate) faults: Faults,
    pub(crate) requests: Requests,
    pub(crate) frames: FrameBudget,
    pub(crate) max_frame: usize,
    pub(crate) max_answer: usize,
    pub(crate) max_connections: usize,
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
            max_answer: state.settings.max_frame.max(MIN_MAX_ANSWER),
            max_connections: state.settings.max_connections,
            requests,
            faults: Faults::default(),
            frames: FrameBudget::new(
                state.settings.max_frame.saturating_mul(LONGEST_REQUESTS).max(MIN_FRAME_BUDGET),
            ),
            sooner: Notify::new(),
            stopped: watch::Sender::new(false),
            failure: watch::Sender::new(None),
            up: (0..nodes).map(|_| watch::Sender::new(true)).collect(),
            state: Mutex::new(Planned { state, tick: Instant::now() }),
        }
    }

    /// Does something with the state, and wakes the ticker if something is due earlier now.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut planned = self.lock();
        let result = work(&mut planned.state);
        self.look_at(&planned.state);
        let next = planned.state.next_deadline();
        if next < planned.tick {
            planned.tick = next;
            self.sooner.notify_one();
        }
        result
    }

    /// Does something with the state after which nothing is due earlier: what Produce and Fetch do.
    pub(crate) fn with_logs<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut planned = self.lock();
        let result = work(&mut planned.state);
        self.look_at(&planned.state);
        result
    }

    /// Ends the broker if it has failed.
    fn look_at(&self, state: &State) {
        if let Some(why) = state.failure() {
            self.failure.send_replace(Some(why.to_owned()));
            self.stop();
        }
    }

    /// Why the broker has ended by itself, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Waits until the broker has ended by itself.
    pub(crate) async fn failed(&self) -> String {
        let mut failure = self.failure.subscribe();
        match failure.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            // The sender lives in `self`.
            Err(_) => String::new(),
        }
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
                self.look_at(&planned.state);
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
