//! Blocking calls of a client, on the thread that makes them.

use std::time::Duration;

use flechtwerk::simulation::{BrokerError, ErrorKind};

use crate::plan::Micros;
use crate::process::wait;
use crate::wire::{Answer, Request, State};
use crate::world::with;

pub(crate) fn error(kind: ErrorKind, code: &str) -> BrokerError {
    BrokerError { kind, code: code.to_owned(), text: "simulated".to_owned(), output: None, size: None }
}

/// Waits for what becomes of a request; `None` when the time is up before.
pub(crate) fn outcome(slot: usize, until: Micros) -> Option<State> {
    let mut found = None;
    wait(until, &mut || {
        found = with(|world| match &world.slots[slot].state {
            State::Pending => None,
            other => Some(other.clone()),
        });
        found.is_some()
    });
    found
}

/// One request that is not repeated by the client.
pub(crate) fn call(client: usize, request: Request, limit: Duration) -> Result<Answer, BrokerError> {
    let (slot, until) = with(|world| (world.send(client, request), world.now + limit.as_micros() as Micros));
    match outcome(slot, until) {
        Some(State::Answered(answer)) => Ok(answer),
        Some(State::Lost) => Err(error(ErrorKind::Retriable, "_TRANSPORT")),
        Some(State::Pending) | None => Err(error(ErrorKind::TimedOut, "_TIMED_OUT")),
    }
}
