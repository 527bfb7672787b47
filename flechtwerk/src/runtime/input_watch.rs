//! Looks now and then whether the inputs are still the topics that they were: a member of a group hears that one is gone, but
//! not that another stands there under its name, of which it would read what lies behind the position in the old one.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::context::{Cancel, StageContext};
use super::error::{Failure, guarded};
use super::topic_watch::TopicWatch;

/// How often a watch is asked whether it is time for a look.
const TICK: Duration = Duration::from_secs(1);

/// Watches until it is dropped.
pub(super) struct InputWatch {
    #[expect(dead_code, reason = "dropping it ends the thread")]
    stop: Sender<()>,
    cancel: Cancel,
}

impl InputWatch {
    /// Starts watching; `failed` is told that an input has changed. Configs have a watch of their own where they are read.
    pub(super) fn start(
        stages: Vec<Arc<StageContext>>,
        failed: impl Fn(Failure) + Send + 'static,
    ) -> InputWatch {
        let (stop, stopped) = channel();
        let cancel = Cancel::default();
        let watch = InputWatch { stop, cancel: cancel.clone() };
        std::thread::spawn(move || {
            if let Err(failure) = guarded("the watch over the inputs", || look(&stages, &stopped, &cancel)) {
                failed(failure);
            }
        });
        watch
    }
}

impl Drop for InputWatch {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn look(stages: &[Arc<StageContext>], stopped: &Receiver<()>, cancel: &Cancel) -> Result<(), Failure> {
    let mut watches = Vec::new();
    for context in stages.iter().filter(|context| context.info.extractor.is_none()) {
        let who = format!("stage {}", context.info.name);
        let limit = context.limits.broker_timeout;
        // A cluster that does not answer is noticed elsewhere, and told better.
        let watch = loop {
            match TopicWatch::begin(&context.inputs, &context.names.leases, None, &who, limit, cancel) {
                Ok(Some(watch)) => break watch,
                Ok(None) => return Ok(()),
                Err(_) if matches!(stopped.recv_timeout(TICK), Err(RecvTimeoutError::Timeout)) => {}
                Err(_) => return Ok(()),
            }
        };
        let anew = format!(
            "the committed offsets of group {} are those of the old one, and what lies before them in the new one would never be \
             read; use `reset` to begin with the new one",
            context.names.application_id
        );
        watches.push((who, watch.only_anew(anew)));
    }
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
        for (who, watch) in &mut watches {
            watch.look(who)?;
        }
    }
    Ok(())
}
