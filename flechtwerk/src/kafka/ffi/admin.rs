//! What requests of the admin API have in common: each is sent, waited for and read by one call.

use std::ffi::{CString, c_char};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as rd;
use rdkafka::bindings::rd_kafka_admin_op_t as Op;

use super::error::{self, NativeError, code};
use super::{Handle, Queue, millis, raw, text};

/// How long an answer may take beyond the time limit that librdkafka was given for it.
const GRACE: Duration = Duration::from_secs(1);

/// An answer; destroyed when dropped.
pub(super) struct Answer(pub(super) *mut rd::rd_kafka_event_t);

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: ours, not used afterwards.
        unsafe { rd::rd_kafka_event_destroy(self.0) };
    }
}

/// Options of a request; destroyed when dropped.
pub(super) struct Options(pub(super) *mut rd::rd_kafka_AdminOptions_t);

impl Options {
    pub(super) fn new(handle: &Handle, op: Op, limit: Duration) -> Result<Self, NativeError> {
        // SAFETY: `op` is of the enum; the reason is not asked for.
        unsafe {
            let options = Self(rd::rd_kafka_AdminOptions_new(handle.as_ptr(), op));
            error::check(rd::rd_kafka_AdminOptions_set_request_timeout(
                options.0,
                millis(limit),
                std::ptr::null_mut(),
                0,
            ))?;
            Ok(options)
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: ours, not used afterwards.
        unsafe { rd::rd_kafka_AdminOptions_destroy(self.0) };
    }
}

/// Sends a request by `send` and waits for its answer.
///
/// # Safety
/// `send` uses the three pointers for the one request only.
pub(super) unsafe fn ask(
    handle: &Arc<Handle>,
    options: &Options,
    limit: Duration,
    send: impl FnOnce(*mut rd::rd_kafka_t, *const rd::rd_kafka_AdminOptions_t, *mut rd::rd_kafka_queue_t),
) -> Result<Answer, NativeError> {
    let queue = Queue::new(handle);
    send(handle.as_ptr(), options.0, queue.as_ptr());
    let event = queue.poll_raw(limit + GRACE);
    if event.is_null() {
        return Err(NativeError::new(code::LOCAL_TIMED_OUT, "no answer to an admin request"));
    }
    let answer = Answer(event);
    // SAFETY: the event is alive; its strings live as long.
    unsafe {
        error::check_number(raw::rd_kafka_event_error(answer.0)).map_err(|error| NativeError {
            text: text(rd::rd_kafka_event_error_string(answer.0)),
            ..error
        })?;
    }
    Ok(answer)
}

/// Makes a slice of what librdkafka calls an array and its count; null has none.
///
/// # Safety
/// `count` elements stand at `array` and live for `'a`.
pub(super) unsafe fn slice<'a, T>(array: *const T, count: usize) -> &'a [T] {
    // SAFETY: by the caller.
    if array.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(array, count) } }
}

/// C strings, and pointers to them that are valid as long as the strings.
pub(super) struct Names(
    #[expect(dead_code, reason = "keeps what the pointers point to")] Vec<CString>,
    pub(super) Vec<*const c_char>,
);

impl Names {
    pub(super) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, NativeError> {
        let owned = names.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let pointers = owned.iter().map(|name| name.as_ptr()).collect();
        Ok(Self(owned, pointers))
    }
}
