//! Events of a client's main or consumer queue, copied out.

use std::ffi::c_char;

use rdkafka::bindings as rd;

use super::error::{NativeError, code};
use super::list::{self, Entry};
use super::{raw, text};

/// What a client has to say.
#[derive(Debug)]
pub(crate) enum Event {
    /// A log line; levels as of syslog.
    Log { level: i32, facility: String, text: String },
    /// An error of the client as a whole.
    Error(NativeError),
    /// A new assignment, which waits for an answer by [`super::Handle::assign`].
    Assign(Vec<Entry>),
    /// A revocation, which waits for the same.
    Revoke,
    /// Records that were not delivered.
    Deliveries(Vec<Delivery>),
    /// A record that came here and not into its partition's queue.
    Stray,
    /// Nothing of interest.
    Other,
}

/// A record that was not delivered.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) code: i32,
    /// What was given to the produce call.
    pub(crate) tag: usize,
    pub(crate) topic: String,
    /// Bytes of key and value.
    pub(crate) size: usize,
}

/// Reads an event and destroys it.
///
/// # Safety
/// `event` came from a queue, is not null and is not used afterwards.
pub(super) unsafe fn take(event: *mut rd::rd_kafka_event_t) -> Event {
    // SAFETY: by the caller; every accessor used fits the type that it is asked for.
    unsafe {
        let taken = match rd::rd_kafka_event_type(event) {
            rd::RD_KAFKA_EVENT_LOG => log(event),
            rd::RD_KAFKA_EVENT_ERROR => Event::Error(NativeError {
                fatal: rd::rd_kafka_event_error_is_fatal(event) != 0,
                ..NativeError::new(
                    raw::rd_kafka_event_error(event),
                    text(rd::rd_kafka_event_error_string(event)),
                )
            }),
            rd::RD_KAFKA_EVENT_REBALANCE => match raw::rd_kafka_event_error(event) {
                code::LOCAL_ASSIGN_PARTITIONS => {
                    Event::Assign(list::entries(rd::rd_kafka_event_topic_partition_list(event)))
                }
                code::LOCAL_REVOKE_PARTITIONS => Event::Revoke,
                number => Event::Error(NativeError::new(number, "the rebalance failed")),
            },
            rd::RD_KAFKA_EVENT_DR => Event::Deliveries(deliveries(event)),
            rd::RD_KAFKA_EVENT_FETCH => Event::Stray,
            _ => Event::Other,
        };
        rd::rd_kafka_event_destroy(event);
        taken
    }
}

unsafe fn log(event: *mut rd::rd_kafka_event_t) -> Event {
    let (mut facility, mut line): (*const c_char, *const c_char) = (std::ptr::null(), std::ptr::null());
    let mut level = 0;
    // SAFETY: a log event; the strings live as long as it.
    unsafe {
        if rd::rd_kafka_event_log(event, &mut facility, &mut line, &mut level) != 0 {
            return Event::Other;
        }
    }
    Event::Log { level, facility: text(facility), text: text(line) }
}

unsafe fn deliveries(event: *mut rd::rd_kafka_event_t) -> Vec<Delivery> {
    let mut failed = Vec::new();
    // SAFETY: a delivery event; its messages live as long as it. The error is read as a number, since a broker's
    // code may lie outside of the enum.
    unsafe {
        loop {
            let message = rd::rd_kafka_event_message_next(event);
            if message.is_null() {
                return failed;
            }
            let number = std::ptr::addr_of!((*message).err).cast::<i32>().read();
            if number != code::NO_ERROR {
                failed.push(Delivery {
                    code: number,
                    tag: (*message)._private as usize,
                    topic: text(rd::rd_kafka_topic_name((*message).rkt)),
                    size: (*message).len + (*message).key_len,
                });
            }
        }
    }
}
