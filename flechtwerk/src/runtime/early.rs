//! Answers that a worker gives before the state machine has asked.

use crate::task::Event;

/// Where the answer to a command waits that is given before the machine asks: without it, each commit would wait for a
/// task and a thread to wake up once more.
#[derive(Default)]
pub(super) struct Early {
    given: Option<Event>,
    asked: Option<Event>,
}

impl Early {
    /// An answer is there, if it is one.
    pub(super) fn give(&mut self, answer: Option<Event>) {
        self.given = answer;
    }

    /// The machine asks: false if nothing is there, and the thread has to be asked.
    pub(super) fn ask(&mut self) -> bool {
        self.asked = self.given.take();
        self.asked.is_some()
    }

    /// The answer to what was asked. One that the machine did not ask for is forgotten.
    pub(super) fn take(&mut self) -> Option<Event> {
        self.given = None;
        self.asked.take()
    }
}
