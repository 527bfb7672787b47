//! Measures how far the tasks are behind their inputs, now and then, off every path that matters.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::context::StageContext;
use crate::observe::names;

/// Between two measurements.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time limit of one question to the cluster.
const ASK_LIMIT: Duration = Duration::from_secs(2);

/// The committed positions of a stage's running tasks, by partition, one for each input.
#[derive(Default)]
pub(crate) struct Positions(Mutex<BTreeMap<i32, Vec<i64>>>);

impl Positions {
    pub(super) fn set(&self, partition: i32, positions: Vec<i64>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(partition, positions);
    }

    pub(super) fn remove(&self, partition: i32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&partition);
    }

    fn get(&self) -> BTreeMap<i32, Vec<i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Measures until it is dropped.
pub(super) struct Observer(#[expect(dead_code, reason = "dropping it ends the thread")] Sender<()>);

impl Observer {
    pub(super) fn start(stages: Vec<Arc<StageContext>>) -> Observer {
        let (sender, stopped) = channel::<()>();
        std::thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(INTERVAL) {
                stages.iter().for_each(|stage| measure(stage));
            }
        });
        Observer(sender)
    }
}

fn measure(context: &StageContext) {
    for (partition, positions) in context.positions.get() {
        for (at, position) in context.input_partitions(partition).iter().zip(positions) {
            // A question that is not answered leaves the last figure: the next one comes soon.
            if let Ok(marks) = context.inputs.watermarks(at, ASK_LIMIT) {
                let lag = (marks.high - position).max(0);
                names::lag(context.info.name, &at.topic, partition).set(lag as f64);
            }
        }
    }
}
