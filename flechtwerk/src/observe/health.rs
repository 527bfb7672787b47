//! What `/live` and `/ready` answer: told by the runtime, read by the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::names;

/// Shared by all stages of the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stopping: bool,
    stopped: bool,
    stages: BTreeMap<String, StageHealth>,
}

/// One stage of this instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StageHealth {
    /// The group has answered with an assignment at least once.
    joined: bool,
    /// Tasks assigned to this instance.
    assigned: usize,
    /// Tasks that process records: fenced, restored and reading.
    running: usize,
}

impl Health {
    pub(crate) fn new<'a>(stages: impl IntoIterator<Item = &'a str>) -> Self {
        let stages = stages.into_iter().map(|stage| (stage.to_owned(), StageHealth::default())).collect();
        Health(Arc::new(Mutex::new(State { stages, ..State::default() })))
    }

    /// An assignment, or a change of what runs. An instance without tasks is a spare, and ready.
    pub(crate) fn update(&self, stage: &str, assigned: usize, running: usize) {
        names::tasks_assigned(stage).set(assigned as f64);
        names::tasks_running(stage).set(running as f64);
        self.lock().stages.insert(stage.to_owned(), StageHealth { joined: true, assigned, running });
    }

    /// A clean stop has begun: no new work is wanted here.
    pub(crate) fn stopping(&self) {
        self.lock().stopping = true;
    }

    /// The process is about to end.
    pub(crate) fn stopped(&self) {
        self.lock().stopped = true;
    }

    /// The process works, or is on its way to.
    pub(crate) fn live(&self) -> bool {
        !self.lock().stopped
    }

    /// All stages have joined, all their tasks run, and nobody has asked for a stop.
    pub(crate) fn ready(&self) -> bool {
        let state = self.lock();
        !state.stopping
            && !state.stopped
            && state.stages.values().all(|stage| stage.joined && stage.running >= stage.assigned)
    }

    /// For people who ask why.
    pub(super) fn json(&self) -> String {
        let (live, ready) = (self.live(), self.ready());
        let stages = self.lock().stages.clone();
        serde_json::json!({ "live": live, "ready": ready, "stages": stages }).to_string()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Plain numbers: a panic of another thread leaves none of them half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_every_stage_has_joined_and_all_its_tasks_run() {
        let health = Health::new(["count", "merge"]);
        assert!(health.live() && !health.ready());
        health.update("count", 2, 1);
        health.update("merge", 0, 0);
        assert!(!health.ready());
        health.update("count", 2, 2);
        assert!(health.ready());
        health.update("count", 3, 2);
        assert!(!health.ready());
    }

    #[test]
    fn live_but_not_ready_while_stopping() {
        let health = Health::new(["count"]);
        health.update("count", 1, 1);
        health.stopping();
        assert!(health.live() && !health.ready());
    }

    #[test]
    fn neither_live_nor_ready_once_stopped() {
        let health = Health::new(["count"]);
        health.update("count", 0, 0);
        assert!(health.ready());
        health.stopped();
        assert!(!health.live() && !health.ready());
    }

    #[test]
    fn the_answer_says_which_stage() {
        let health = Health::new(["count"]);
        health.update("count", 2, 1);
        let expected =
            r#"{"live":true,"ready":false,"stages":{"count":{"joined":true,"assigned":2,"running":1}}}"#;
        let (shown, expected) = (health.json(), serde_json::from_str::<serde_json::Value>(expected).unwrap());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), expected);
    }
}
