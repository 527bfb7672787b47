//! The call that adds a group's offsets to a transaction, made by a thread that can be left behind.
//!
//! librdkafka may wait for ever, whatever the limit, for a group coordinator that has left the cluster's list of brokers, even
//! when that one is back. So each producer has a thread for this call. If the call does not return, the thread is left behind
//! with the client; it will end some time, when the state of any connection changes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::errors::broker_error;
use super::ffi::{Api, Handle, List, NativeError, code};
use super::logging::no_thread;
use crate::port::{BrokerError, ErrorKind};

/// A call that is this much later than it was asked to be, with nothing on its way, is stuck.
const STUCK: Duration = Duration::from_secs(4);

/// One call.
struct Call {
    producer: Arc<Handle>,
    offsets: List,
    group: Arc<Handle>,
    limit: Duration,
}

/// The way to the thread, and back.
struct Thread {
    calls: Sender<Call>,
    results: Receiver<Result<(), NativeError>>,
}

/// The thread, from the first call on; it ends when this is dropped.
#[derive(Default)]
pub(super) struct OffsetSender {
    thread: Option<Thread>,
}

impl OffsetSender {
    /// Sends offsets within `producer`'s transaction. The outer error means that the producer must be given up.
    pub(super) fn send(
        &mut self,
        producer: &Arc<Handle>,
        offsets: List,
        group: Arc<Handle>,
        limit: Duration,
    ) -> Result<Result<(), NativeError>, BrokerError> {
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => start()?,
        };
        let gone = thread.calls.send(Call { producer: producer.clone(), offsets, group, limit }).is_err();
        loop {
            match thread.results.recv_timeout(limit + STUCK) {
                Ok(result) => {
                    self.thread = Some(thread);
                    return Ok(result);
                }
                // It is with the broker, and the client's own time-out holds.
                Err(RecvTimeoutError::Timeout)
                    if !gone && producer.watch().open(Api::TxnOffsetCommit) > 0 => {}
                Err(_) => {
                    let text = "the client does not find its way to the group's coordinator; it is replaced";
                    let error = NativeError::new(code::LOCAL_WAIT_COORD, text);
                    return Err(BrokerError {
                        kind: ErrorKind::Fatal,
                        ..broker_error(error, ErrorKind::Fatal)
                    });
                }
            }
        }
    }
}

fn start() -> Result<Thread, BrokerError> {
    let (calls, queue) = channel::<Call>();
    let (done, results) = channel();
    std::thread::Builder::new()
        .name("kafka-offsets".to_owned())
        .spawn(move || {
            for Call { producer, offsets, group, limit } in queue {
                let result = producer.send_offsets(&offsets, &group, limit);
                // Before the answer: the client ends with its producer, not with this thread.
                drop((producer, group));
                if done.send(result).is_err() {
                    break;
                }
            }
        })
        .map_err(|error| no_thread(&error))?;
    Ok(Thread { calls, results })
}
