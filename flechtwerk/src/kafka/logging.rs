//! librdkafka's log lines and errors, into `tracing`.
//!
//! They arrive only where a client's queue is polled. Producers are polled by whoever owns them; for clients
//! that nobody polls there is [`Servant`].

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing::Level;

use super::ClientSettings;
use super::client::Role;
use super::errors::broker_error;
use super::ffi::{Event, NativeError, Queue, code};
use crate::port::{BrokerError, ErrorKind};

/// How long a servant waits for an event at most, and so how long it may take to end.
const POLL: Duration = Duration::from_millis(500);

/// How long an error of a client may explain why a call of it timed out.
const RECENT: Duration = Duration::from_secs(60);

/// Whose lines they are.
#[derive(Clone, Debug)]
pub(super) struct Source {
    client: Arc<str>,
    role: &'static str,
    owner: Arc<str>,
    last: Arc<Mutex<Option<(Instant, String)>>>,
}

impl Source {
    pub(super) fn new(settings: &ClientSettings, role: Role<'_>) -> Self {
        Self {
            client: Arc::from(settings.client_id.as_str()),
            role: role.name(),
            owner: Arc::from(role.owner()),
            last: Arc::default(),
        }
    }

    /// Writes a log line.
    pub(super) fn line(&self, level: i32, facility: &str, text: &str) {
        let Self { client, role, owner, .. } = self;
        match severity(level, facility, text) {
            Level::ERROR => tracing::error!(%client, role, %owner, facility, "{text}"),
            Level::WARN => tracing::warn!(%client, role, %owner, facility, "{text}"),
            Level::INFO => tracing::info!(%client, role, %owner, facility, "{text}"),
            _ => tracing::debug!(%client, role, %owner, facility, "{text}"),
        }
    }

    /// Writes an error of the client as a whole, which it deals with itself.
    pub(super) fn error(&self, error: &NativeError) {
        let Self { client, role, owner, .. } = self;
        // That all brokers are down says less than the error of any one of them.
        if error.code != code::LOCAL_ALL_BROKERS_DOWN {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some((Instant::now(), error.text.clone()));
        }
        let name = error.name();
        match error.code {
            // Their log lines say the same.
            code::LOCAL_TRANSPORT | code::LOCAL_ALL_BROKERS_DOWN | code::LOCAL_RESOLVE => {
                tracing::debug!(%client, role, %owner, error = name, "{}", error.text);
            }
            _ => tracing::warn!(%client, role, %owner, error = name, "{}", error.text),
        }
    }

    /// Adds to a call that got no answer what the client has lately had to complain about: a call only says that
    /// it timed out, where the reason is a refused connection or a wrong password.
    pub(super) fn explain(&self, error: BrokerError) -> BrokerError {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*last, error.kind) {
            (Some((at, reason)), ErrorKind::TimedOut | ErrorKind::Retriable) if at.elapsed() < RECENT => {
                BrokerError { text: format!("{}; last error of the client: {reason}", error.text), ..error }
            }
            _ => error,
        }
    }

    /// Writes whatever an event has to say to a log; gives back what it is besides.
    pub(super) fn heard(&self, event: Event) -> Option<Event> {
        match event {
            Event::Log { level, facility, text } => {
                self.line(level, facility.trim(), text.trim());
                None
            }
            Event::Error(error) => {
                self.error(&error);
                Some(Event::Error(error))
            }
            Event::Other => None,
            event => Some(event),
        }
    }
}

/// How much a log line matters here. librdkafka calls everything an error that it is going to repeat; here an error is
/// what stops something, and a warning what somebody should look at.
fn severity(level: i32, facility: &str, text: &str) -> Level {
    let harmless = match facility {
        "CONFWARN" => text.contains("will be ignored"),
        "TERMINATE" => true,
        // Of a fence: the coordinator is just made, moves, or still ends the transaction before. Where that lasts, the
        // task itself says so.
        "GETPID" => text.ends_with("retrying"),
        _ => false,
    };
    match level {
        _ if harmless => Level::DEBUG,
        ..=2 => Level::ERROR,
        3 | 4 => Level::WARN,
        5 | 6 => Level::INFO,
        _ => Level::DEBUG,
    }
}

/// Polls a queue on a thread of its own, for logs and errors, until it is dropped.
pub(super) struct Servant {
    stop: Arc<AtomicBool>,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Servant {
    /// `heard` gets what is no log line.
    pub(super) fn start(
        queue: Queue,
        source: Source,
        heard: impl Fn(Event) + Send + 'static,
    ) -> Result<Self, BrokerError> {
        let stop = Arc::new(AtomicBool::new(false));
        let queue = Arc::new(queue);
        let thread = {
            let (stop, queue) = (Arc::clone(&stop), Arc::clone(&queue));
            std::thread::Builder::new().name(format!("kafka-{}", source.role)).spawn(move || {
                while !stop.load(SeqCst) {
                    if let Some(event) = queue.poll(POLL).and_then(|event| source.heard(event)) {
                        heard(event);
                    }
                }
            })
        };
        let thread = thread.map_err(|error| no_thread(&error))?;
        Ok(Self { stop, queue, thread: Some(thread) })
    }
}

impl Drop for Servant {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        self.queue.interrupt();
        if let Some(thread) = self.thread.take() {
            // It can't have panicked in a way that matters to anybody here.
            let _ = thread.join();
        }
    }
}

/// The operating system refused a thread.
pub(super) fn no_thread(error: &std::io::Error) -> BrokerError {
    let text = format!("can't start a thread for a Kafka client: {error}");
    broker_error(NativeError::new(code::LOCAL_STATE, text), ErrorKind::Fatal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_first_start_always_says_is_no_warning() {
        for reason in [
            "Broker: Not coordinator",
            "Broker: Producer attempted to update a transaction while another concurrent operation on the same \
             transaction was ongoing",
        ] {
            let text = format!("Failed to acquire transactional PID from broker a:9/1: {reason}: retrying");
            assert_eq!(severity(4, "GETPID", &text), Level::DEBUG, "{text}");
        }
        assert_eq!(severity(4, "GETPID", "Acquired invalid PID{-1,-1}: ignoring"), Level::WARN);
        assert_eq!(severity(3, "FAIL", "Connect to a:9 failed: Connection refused"), Level::WARN);
        assert_eq!(severity(0, "FATAL", "a client is fenced"), Level::ERROR);
    }
}
