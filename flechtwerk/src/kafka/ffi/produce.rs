//! Queues records for sending.

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;

use rdkafka::bindings as rd;
use rdkafka::bindings::rd_kafka_vtype_t as V;

use super::error::{self, NativeError, code};
use super::{Handle, text};
use crate::glue::Outputs;
use crate::port::ChangelogRecord;
use crate::record::Headers;

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

    /// Its name.
    pub(crate) fn name(&self) -> String {
        // SAFETY: alive.
        text(unsafe { rd::rd_kafka_topic_name(self.topic) })
    }

    /// Queues changelog records from `from` on, all to one partition, with the tag 0. Timestamps are the
    /// client's clock: the batch call can't carry others.
    ///
    /// Answers the first record that was not queued and why; those before it were, none after it was.
    pub(crate) fn produce_batch(
        &self,
        partition: i32,
        changes: &[ChangelogRecord],
        from: usize,
    ) -> Result<(), (usize, NativeError)> {
        let rest = changes.get(from..).unwrap_or_default();
        let mut messages: Vec<rd::rd_kafka_message_t> = rest
            .iter()
            .map(|change| rd::rd_kafka_message_t {
                err: rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR,
                rkt: std::ptr::null_mut(),
                partition,
                payload: change.value.as_ref().map_or(std::ptr::null_mut(), |value| void(value)),
                len: change.value.as_ref().map_or(0, |value| value.len()),
                key: void(&change.key),
                key_len: change.key.len(),
                offset: 0,
                _private: std::ptr::null_mut(),
            })
            .collect();
        let count = c_int::try_from(messages.len()).unwrap_or(c_int::MAX);
        // SAFETY: keys and values live through the call and are copied by it; `count` messages stand there.
        let queued = unsafe {
            rd::rd_kafka_produce_batch(
                self.topic,
                partition,
                rd::RD_KAFKA_MSG_F_COPY,
                messages.as_mut_ptr(),
                count,
            )
        };
        if queued == count {
            return Ok(());
        }
        let failed = messages.iter().enumerate().find_map(|(index, message)| {
            // SAFETY: a live reference; read as a number, since the code may lie outside of the enum.
            let number = unsafe { std::ptr::addr_of!(message.err).cast::<i32>().read() };
            error::check_number(number).err().map(|error| (from + index, error))
        });
        failed.map_or(Ok(()), Err)
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
        // Made once; only what differs is written for each record.
        let mut vus = [
            vu(V::RD_KAFKA_VTYPE_MSGFLAGS),
            vu(V::RD_KAFKA_VTYPE_RKT),
            vu(V::RD_KAFKA_VTYPE_PARTITION),
            vu(V::RD_KAFKA_VTYPE_KEY),
            vu(V::RD_KAFKA_VTYPE_VALUE),
            vu(V::RD_KAFKA_VTYPE_TIMESTAMP),
            vu(V::RD_KAFKA_VTYPE_OPAQUE),
            vu(V::RD_KAFKA_VTYPE_HEADERS),
        ];
        vus[0].u.i = rd::RD_KAFKA_MSG_F_COPY;
        for (index, record) in outputs.records.iter().enumerate().skip(from) {
            let Some(topic) = topics.get(usize::from(record.topic)) else {
                let text = format!("there is no output topic with index {}", record.topic);
                return Err((index, NativeError::new(code::LOCAL_INVALID_ARG, text)));
            };
            debug_assert!(std::ptr::eq(&*topic.handle, self), "a topic of another client");
            vus[1].u.rkt = topic.topic;
            vus[2].u.i32_ = record.partition.unwrap_or(UNASSIGNED);
            vus[3].u.mem = part(record.key.as_ref().map(|range| outputs.slice(range)));
            vus[4].u.mem = part(record.value.as_ref().map(|range| outputs.slice(range)));
            vus[5].u.i64_ = record.timestamp;
            vus[6].u.ptr = (index + 1) as *mut c_void;
            let headers = native_headers(&record.headers);
            vus[7].u.headers = headers;
            let count = if headers.is_null() { 7 } else { 8 };
            // SAFETY: all that `vus` points to lives through the call, which copies key and value. The headers
            // are taken over if it succeeds and are ours still if not.
            let result = unsafe { error::take(rd::rd_kafka_produceva(self.as_ptr(), vus.as_ptr(), count)) };
            if let Err(error) = result {
                if !headers.is_null() {
                    // SAFETY: see above.
                    unsafe { rd::rd_kafka_headers_destroy(headers) };
                }
                return Err((index, error));
            }
        }
        Ok(())
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
