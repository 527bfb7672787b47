//! Queues records for sending.
//!
//! Changelog records go in one call: they are many, and need neither timestamp nor header nor partitioner. Outputs
//! need them, and go one by one.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use rdkafka::bindings as rd;
use rdkafka::bindings::rd_kafka_vtype_t as V;

use super::Handle;
use super::error::{self, NativeError, code};
use crate::format::ChangelogRecord;
use crate::glue::Outputs;
use crate::record::Headers;

/// A timestamp as the client takes it. It has no word for the time 0, which it takes for now: that goes as the nearest there is
/// (S1.5f).
fn time(timestamp: i64) -> i64 {
    if timestamp == 0 { 1 } else { timestamp }
}

/// The partitioner is to choose.
const UNASSIGNED: i32 = -1;

/// A topic as one producer knows it.
pub(crate) struct Topic {
    topic: *mut rd::rd_kafka_topic_t,
    handle: Arc<Handle>,
}

// SAFETY: librdkafka's topic handles are made for use by many threads.
unsafe impl Send for Topic {}

impl Topic {
    pub(crate) fn new(handle: &Arc<Handle>, name: &str) -> Result<Self, NativeError> {
        let native = CString::new(name)?;
        // SAFETY: the name lives through the call; null if it can't be a topic's.
        let topic = unsafe { rd::rd_kafka_topic_new(handle.as_ptr(), native.as_ptr(), std::ptr::null_mut()) };
        if topic.is_null() {
            return Err(NativeError::new(code::INVALID_TOPIC, format!("`{name}` can't be a topic's name")));
        }
        Ok(Self { topic, handle: Arc::clone(handle) })
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        // SAFETY: ours, not used afterwards; the client is still there.
        unsafe { rd::rd_kafka_topic_destroy(self.topic) };
    }
}

fn void(bytes: &[u8]) -> *mut c_void {
    bytes.as_ptr().cast_mut().cast()
}

fn vu(vtype: V) -> rd::rd_kafka_vu_t {
    rd::rd_kafka_vu_t { vtype, u: rd::rd_kafka_vu_s__bindgen_ty_1 { _pad: [0; 64] } }
}

fn part(bytes: Option<&[u8]>) -> rd::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
    rd::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
        // An empty part is not null (S1.3), and neither is the pointer of an empty slice.
        ptr: bytes.map_or(std::ptr::null_mut(), void),
        size: bytes.map_or(0, <[u8]>::len),
    }
}

/// A record to queue, borrowed.
struct Parts<'a> {
    topic: &'a Topic,
    partition: i32,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    timestamp: i64,
    headers: Option<&'a Headers>,
    tag: usize,
}

/// The arguments of a produce call, made once: only what differs is written for each record.
struct Call([rd::rd_kafka_vu_t; 8]);

impl Call {
    fn new() -> Self {
        let mut call = Self([
            vu(V::RD_KAFKA_VTYPE_MSGFLAGS),
            vu(V::RD_KAFKA_VTYPE_RKT),
            vu(V::RD_KAFKA_VTYPE_PARTITION),
            vu(V::RD_KAFKA_VTYPE_KEY),
            vu(V::RD_KAFKA_VTYPE_VALUE),
            vu(V::RD_KAFKA_VTYPE_TIMESTAMP),
            vu(V::RD_KAFKA_VTYPE_OPAQUE),
            vu(V::RD_KAFKA_VTYPE_HEADERS),
        ]);
        call.0[0].u.i = rd::RD_KAFKA_MSG_F_COPY;
        call
    }

    /// Queues one record.
    fn produce(&mut self, handle: &Handle, record: &Parts<'_>) -> Result<(), NativeError> {
        debug_assert!(std::ptr::eq(&*record.topic.handle, handle), "a topic of another client");
        let vus = &mut self.0;
        vus[1].u.rkt = record.topic.topic;
        vus[2].u.i32_ = record.partition;
        vus[3].u.mem = part(record.key);
        vus[4].u.mem = part(record.value);
        vus[5].u.i64_ = time(record.timestamp);
        vus[6].u.ptr = record.tag as *mut c_void;
        let headers = record.headers.map_or(std::ptr::null_mut(), native_headers);
        vus[7].u.headers = headers;
        let count = if headers.is_null() { 7 } else { 8 };
        // SAFETY: all that `vus` points to lives through the call, which copies key and value. The headers are
        // taken over if it succeeds and are ours still if not.
        unsafe {
            let result = error::take(rd::rd_kafka_produceva(handle.as_ptr(), vus.as_ptr(), count));
            if result.is_err() && !headers.is_null() {
                rd::rd_kafka_headers_destroy(headers);
            }
            result
        }
    }
}

impl Handle {
    /// Queues outputs from `from` on; the tag of each is its index + 1. `topics` are those of this client, in
    /// the order of [`crate::glue::OutputRecord::topic`].
    ///
    /// Answers the first record that was not queued and why.
    pub(crate) fn produce(
        &self,
        topics: &[&Topic],
        outputs: &Outputs,
        from: usize,
    ) -> Result<(), (usize, NativeError)> {
        let mut call = Call::new();
        for (index, record) in outputs.records.iter().enumerate().skip(from) {
            let Some(topic) = topics.get(usize::from(record.topic)) else {
                let text = format!("there is no output topic with index {}", record.topic);
                return Err((index, NativeError::new(code::LOCAL_INVALID_ARG, text)));
            };
            let parts = Parts {
                topic,
                partition: record.partition.unwrap_or(UNASSIGNED),
                key: record.key.as_ref().map(|range| outputs.slice(range)),
                value: record.value.as_ref().map(|range| outputs.slice(range)),
                timestamp: record.timestamp,
                headers: Some(&record.headers),
                tag: index + 1,
            };
            call.produce(self, &parts).map_err(|error| (index, error))?;
        }
        Ok(())
    }

    /// Records and events that are not done with.
    #[cfg(feature = "crash-points")]
    pub(crate) fn queued(&self) -> i32 {
        // SAFETY: no pointers.
        unsafe { rd::rd_kafka_outq_len(self.as_ptr()) }
    }

    /// Queues the changelog records with these indices, all to one partition, with the tag 0. Those that the
    /// queue had no room for stay in `pending`: there is one record for each key, so that their order is free.
    ///
    /// Answers a record that was refused for another reason, and why.
    pub(crate) fn produce_changes(
        &self,
        topic: &Topic,
        partition: i32,
        changes: &[ChangelogRecord],
        pending: &mut Vec<usize>,
    ) -> Result<(), (usize, NativeError)> {
        debug_assert!(std::ptr::eq(&*topic.handle, self), "a topic of another client");
        // SAFETY: all fields of a message are integers, pointers or an enum with zero in it.
        let empty: rd::rd_kafka_message_t = unsafe { std::mem::zeroed() };
        let mut messages: Vec<rd::rd_kafka_message_t> = pending
            .iter()
            .map(|index| {
                let change = &changes[*index];
                let value = part(change.value.as_deref());
                rd::rd_kafka_message_t {
                    key: void(&change.key),
                    key_len: change.key.len(),
                    payload: value.ptr,
                    len: value.size,
                    ..empty
                }
            })
            .collect();
        let count = std::ffi::c_int::try_from(messages.len()).unwrap_or(std::ffi::c_int::MAX);
        // SAFETY: keys and values live through the call, which copies them; `count` messages stand there.
        let queued = unsafe {
            let flags = rd::RD_KAFKA_MSG_F_COPY;
            rd::rd_kafka_produce_batch(topic.topic, partition, flags, messages.as_mut_ptr(), count)
        };
        if usize::try_from(queued).is_ok_and(|queued| queued == messages.len()) {
            pending.clear();
            return Ok(());
        }
        let mut refused = None;
        let mut of = messages.iter().zip(pending.to_vec());
        pending.retain(|_| {
            let Some((message, index)) = of.next() else { return true };
            match message.err as i32 {
                code::NO_ERROR => false,
                code::LOCAL_QUEUE_FULL => true,
                number => {
                    refused.get_or_insert_with(|| (index, NativeError::new(number, error::describe(number))));
                    true
                }
            }
        });
        refused.map_or(Ok(()), Err)
    }
}

/// Copies headers; null where there are none.
fn native_headers(headers: &Headers) -> *mut rd::rd_kafka_headers_t {
    if headers.is_empty() {
        return std::ptr::null_mut();
    }
    // SAFETY: names and values are copied with the sizes given.
    unsafe {
        let native = rd::rd_kafka_headers_new(8);
        for header in headers.iter() {
            let value = header.value.as_deref();
            rd::rd_kafka_header_add(
                native,
                header.name.as_ptr().cast(),
                header.name.len() as isize,
                value.map_or(std::ptr::null(), |value| value.as_ptr().cast()),
                value.map_or(0, |value| value.len() as isize),
            );
        }
        native
    }
}
