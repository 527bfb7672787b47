//! Queues of a client.

use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as rd;

use super::error::NativeError;
use super::event::{self, Event};
use super::{Handle, code, millis};
use crate::port::Wake;

/// A reference to one of a client's queues.
pub(crate) struct Queue {
    queue: *mut rd::rd_kafka_queue_t,
    /// What the queue calls when it is no longer empty: an address that must stay the same.
    wake: Option<Box<Wake>>,
    /// Keeps the client alive until the reference is given back.
    _handle: Arc<Handle>,
}

// SAFETY: librdkafka's queues have their own lock.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// The queue on which everything of a producer arrives.
    pub(crate) fn main(handle: &Arc<Handle>) -> Self {
        // SAFETY: the client is alive; the reference is ours.
        Self::own(unsafe { rd::rd_kafka_queue_get_main(handle.as_ptr()) }, handle)
    }

    /// The queue on which everything of a consumer arrives that has no queue of its own.
    pub(crate) fn consumer(handle: &Arc<Handle>) -> Result<Self, NativeError> {
        // SAFETY: as above; null if the client is no consumer with a group.
        let queue = unsafe { rd::rd_kafka_queue_get_consumer(handle.as_ptr()) };
        if queue.is_null() {
            return Err(NativeError::new(code::LOCAL_STATE, "the client has no consumer queue"));
        }
        Ok(Self::own(queue, handle))
    }

    /// Splits a partition's queue off. To be called before the partition is assigned: what was already on its
    /// way to the consumer queue would stay there.
    pub(crate) fn partition(handle: &Arc<Handle>, topic: &str, partition: i32) -> Result<Self, NativeError> {
        let name = CString::new(topic)?;
        // SAFETY: the name lives through the call; the forwarding to the consumer queue is switched off before
        // anything can be fetched.
        unsafe {
            let queue = rd::rd_kafka_queue_get_partition(handle.as_ptr(), name.as_ptr(), partition);
            if queue.is_null() {
                return Err(NativeError::new(
                    code::LOCAL_UNKNOWN_PARTITION,
                    format!("there can be no partition {partition} of topic `{topic}`"),
                ));
            }
            rd::rd_kafka_queue_forward(queue, std::ptr::null_mut());
            Ok(Self::own(queue, handle))
        }
    }

    /// A queue for the answers of one admin request.
    pub(super) fn new(handle: &Arc<Handle>) -> Self {
        // SAFETY: allocates.
        Self::own(unsafe { rd::rd_kafka_queue_new(handle.as_ptr()) }, handle)
    }

    fn own(queue: *mut rd::rd_kafka_queue_t, handle: &Arc<Handle>) -> Self {
        Self { queue, wake: None, _handle: Arc::clone(handle) }
    }

    /// Waits for one event.
    pub(crate) fn poll(&self, limit: Duration) -> Option<Event> {
        let event = self.poll_raw(limit);
        // SAFETY: ours, not null, used nowhere else.
        (!event.is_null()).then(|| unsafe { event::take(event) })
    }

    /// The next event as it is; the caller destroys it. Null after `limit`.
    pub(super) fn poll_raw(&self, limit: Duration) -> *mut rd::rd_kafka_event_t {
        // SAFETY: the queue is alive.
        unsafe { rd::rd_kafka_queue_poll(self.queue, millis(limit)) }
    }

    /// Events waiting.
    #[cfg(all(test, feature = "broker-tests"))]
    pub(crate) fn len(&self) -> usize {
        // SAFETY: the queue is alive.
        unsafe { rd::rd_kafka_queue_length(self.queue) }
    }

    /// Ends a [`Queue::poll`] that waits on another thread, or the next one.
    pub(crate) fn interrupt(&self) {
        // SAFETY: the queue is alive.
        unsafe { rd::rd_kafka_queue_yield(self.queue) };
    }

    /// Has `wake` called when the queue was empty and is no longer. It is called under the queue's lock, so it
    /// must not use the queue.
    pub(crate) fn set_wake(&mut self, wake: Wake) {
        self.clear_wake();
        let wake = Box::new(wake);
        let opaque = std::ptr::from_ref::<Wake>(&wake).cast_mut().cast::<c_void>();
        // SAFETY: `opaque` stays valid until `clear_wake`: the box is kept, and not moved out of.
        unsafe { rd::rd_kafka_queue_cb_event_enable(self.queue, Some(on_event), opaque) };
        self.wake = Some(wake);
    }

    /// Has nothing called any more.
    pub(crate) fn clear_wake(&mut self) {
        // SAFETY: takes the queue's lock, under which the callback runs: afterwards it is not running and never
        // called again.
        unsafe { rd::rd_kafka_queue_cb_event_enable(self.queue, None, std::ptr::null_mut()) };
        self.wake = None;
    }

    pub(super) fn as_ptr(&self) -> *mut rd::rd_kafka_queue_t {
        self.queue
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.wake.is_some() {
            self.clear_wake();
        }
        // SAFETY: our reference, not used afterwards; the client is still there.
        unsafe { rd::rd_kafka_queue_destroy(self.queue) };
    }
}

unsafe extern "C" fn on_event(_: *mut rd::rd_kafka_t, opaque: *mut c_void) {
    // SAFETY: `opaque` is the `Wake` of `set_wake`, alive until `clear_wake` has returned.
    let wake = unsafe { &*opaque.cast::<Wake>() };
    // A panic must not cross the C frames above; it has already been reported by the panic hook.
    let _ = catch_unwind(AssertUnwindSafe(|| wake()));
}
