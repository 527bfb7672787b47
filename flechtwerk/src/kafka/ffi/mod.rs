//! Everything unsafe: thin safe wrappers around librdkafka's C API and two calls of the allocator, and nothing else.
//!
//! Why not only `rdkafka`'s own types: they can't take request interceptors, neither read nor write offset
//! metadata that is not UTF-8 without panicking, don't give the offset of an end-of-partition event, and make
//! one allocation per consumed record. What stands here is the part of the C API that the adapters need.
//!
//! Rules of this module:
//! - A [`Handle`] owns the client. Everything made from it (queues, topics, held messages) keeps an `Arc` of it
//!   and destroys its own native object first, so that nothing native outlives its client.
//! - No pointer leaves the module, and no borrowed native memory outlives the call that read it: all is copied.
//! - Callbacks that librdkafka makes (interceptors, wake-ups) never unwind and never call back into it.
//! - Error codes are carried as `i32`: a broker may answer with a code that the bindings' enum does not have.
#![allow(unsafe_code)]

mod admin;
mod admin_offsets;
mod admin_topics;
mod consumer;
mod error;
mod event;
mod handle;
mod list;
pub(crate) mod malloc;
mod produce;
mod queue;
mod raw;
mod records;
mod subscriptions;
mod txn;
mod watch;

pub(crate) use admin_offsets::{Isolation, OffsetSpec};
pub(crate) use admin_topics::{TopicSpec, TopicState};
pub(crate) use error::{NativeError, code, describe};
pub(crate) use event::{Delivery, Event};
pub(crate) use handle::{Handle, Kind};
pub(crate) use list::{Entry, List};
pub(crate) use produce::Topic;
pub(crate) use queue::Queue;
pub(crate) use records::Batch;
pub(crate) use subscriptions::Subscription;
pub(crate) use watch::Api;

use std::ffi::{CStr, c_char};
use std::time::Duration;

/// Copies a C string; lossy, since nothing promises UTF-8. Null is empty.
fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: librdkafka's strings are NUL-terminated and live at least until the call that uses them ends.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// Milliseconds for librdkafka; at least 1 for anything that is not zero, since 0 means "don't wait".
fn millis(limit: Duration) -> i32 {
    let millis = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    if millis == 0 && !limit.is_zero() { 1 } else { millis }
}
