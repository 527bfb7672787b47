//! Records out of a partition's queue, many at once.

use std::collections::VecDeque;
use std::ffi::c_void;

use bytes::{Bytes, BytesMut};
use rdkafka::bindings as rd;

use super::error::{NativeError, code};
use super::{Queue, text};
use crate::glue::RawRecord;
use crate::port::Taken;
use crate::record::Headers;

/// Messages asked of the queue by one call.
const CHUNK: usize = 512;

/// Messages that were taken from a queue and not yet turned into records: those beyond a limit of bytes.
pub(crate) struct Batch {
    /// Before `queue`, hence dropped before it and the client that it keeps.
    held: VecDeque<Message>,
    scratch: Vec<*mut rd::rd_kafka_message_t>,
    /// Records come with their headers: librdkafka takes those of each message apart anew, which costs more than all the
    /// rest of a record.
    headers: bool,
    queue: Queue,
}

// SAFETY: the raw pointers of `scratch` are dead between calls; the messages belong to this value alone.
unsafe impl Send for Batch {}

/// An owned native message.
struct Message(*mut rd::rd_kafka_message_t);

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: ours, not used afterwards; `Batch` drops its messages before its queue, hence the client.
        unsafe { rd::rd_kafka_message_destroy(self.0) };
    }
}

impl Message {
    /// The error, read as a number, since a broker's code may lie outside of the enum.
    fn code(&self) -> i32 {
        // SAFETY: alive.
        unsafe { std::ptr::addr_of!((*self.0).err).cast::<i32>().read() }
    }

    fn key(&self) -> Option<&[u8]> {
        // SAFETY: `key_len` bytes stand at a key that is not null, as long as the message lives.
        unsafe { bytes_at((*self.0).key, (*self.0).key_len) }
    }

    fn value(&self) -> Option<&[u8]> {
        // SAFETY: as above.
        unsafe { bytes_at((*self.0).payload, (*self.0).len) }
    }

    /// Bytes of the key and of the value.
    fn sizes(&self) -> (usize, usize) {
        // SAFETY: alive.
        unsafe { ((*self.0).key_len, (*self.0).len) }
    }

    fn offset(&self) -> i64 {
        // SAFETY: alive.
        unsafe { (*self.0).offset }
    }

    fn partition(&self) -> i32 {
        // SAFETY: alive.
        unsafe { (*self.0).partition }
    }

    fn timestamp(&self) -> i64 {
        let mut kind = rd::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: alive.
        unsafe { rd::rd_kafka_message_timestamp(self.0, &mut kind) }
    }

    fn headers(&self) -> Headers {
        let mut headers = Headers::default();
        let mut native = std::ptr::null_mut();
        // SAFETY: the headers belong to the message; names are C strings, values `size` bytes, null for null.
        unsafe {
            if rd::rd_kafka_message_headers(self.0, &mut native) as i32 != code::NO_ERROR {
                return headers;
            }
            for index in 0.. {
                let (mut name, mut value, mut size) = (std::ptr::null(), std::ptr::null(), 0);
                let found =
                    rd::rd_kafka_header_get_all(native, index, &mut name, &mut value, &mut size) as i32;
                if found != code::NO_ERROR {
                    break;
                }
                let value = (!value.is_null())
                    .then(|| Bytes::copy_from_slice(std::slice::from_raw_parts(value.cast::<u8>(), size)));
                headers.push(text(name), value);
            }
        }
        headers
    }

    /// librdkafka's words, where this stands for an error.
    fn error(&self) -> NativeError {
        // SAFETY: alive; the text lives as long as the message.
        NativeError::new(self.code(), text(unsafe { rd::rd_kafka_message_errstr(self.0) }))
    }
}

/// The bytes of a part of a message; null is none.
///
/// # Safety
/// `length` bytes stand at a `pointer` that is not null, and live for `'a`.
unsafe fn bytes_at<'a>(pointer: *const c_void, length: usize) -> Option<&'a [u8]> {
    // SAFETY: by the caller.
    (!pointer.is_null()).then(|| unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) })
}

impl Batch {
    pub(crate) fn new(queue: Queue, headers: bool) -> Self {
        Self { held: VecDeque::new(), scratch: vec![std::ptr::null_mut(); CHUNK], headers, queue }
    }

    /// Messages waiting here and in the queue.
    #[cfg(all(test, feature = "broker-tests"))]
    pub(crate) fn waiting(&self) -> usize {
        self.held.len() + self.queue.len()
    }

    /// Calls nobody any more, and throws away everything that waits.
    pub(crate) fn close(&mut self) {
        self.queue.clear_wake();
        self.discard();
    }

    /// Throws away everything that waits.
    pub(crate) fn discard(&mut self) {
        loop {
            self.held.clear();
            if self.fill(CHUNK) == 0 {
                return;
            }
        }
    }

    /// Turns up to `max` messages of about `max_bytes` into records, without waiting. Records before offset
    /// `from` are left out: a broker answers with whole batches, and librdkafka's own filter is only trusted
    /// here, not needed. `failed` is called for each error in the queue; `false` ends the taking.
    pub(crate) fn take(
        &mut self,
        input: u16,
        from: i64,
        (max, max_bytes): (usize, usize),
        into: &mut Vec<RawRecord>,
        mut failed: impl FnMut(NativeError) -> bool,
    ) -> Taken {
        let mut taken = Taken::default();
        while taken.records < max && (taken.records == 0 || taken.bytes < max_bytes) {
            if self.held.is_empty() && self.fill(CHUNK.min(max - taken.records)) == 0 {
                break;
            }
            let (count, sizes) = self.fitting(&taken, max, max_bytes);
            if count > 0 {
                let to = Converted { input, from, headers: self.headers };
                let (records, bytes) = convert(self.held.drain(..count), sizes, &to, into);
                taken.records += records;
                taken.bytes += bytes;
                continue;
            }
            let Some(event) = self.held.pop_front_if(|message| message.code() != code::NO_ERROR) else {
                break;
            };
            if event.code() == code::LOCAL_PARTITION_EOF {
                taken.end = Some(event.offset());
            } else if !failed(event.error()) {
                break;
            }
        }
        taken
    }

    /// How many of the messages at hand fit beside what was taken, up to an event, and the bytes of their keys and of their
    /// values. The very first record fits always.
    fn fitting(&self, taken: &Taken, max: usize, max_bytes: usize) -> (usize, (usize, usize)) {
        let (mut count, mut keys, mut values) = (0, 0, 0);
        for message in &self.held {
            let (records, (key, value)) = (taken.records + count, message.sizes());
            let fits = records == 0 || taken.bytes + keys + values + key + value <= max_bytes;
            if message.code() != code::NO_ERROR || records == max || !fits {
                break;
            }
            count += 1;
            keys += key;
            values += value;
        }
        (count, (keys, values))
    }

    /// Takes up to `max` messages from the queue, without waiting.
    fn fill(&mut self, max: usize) -> usize {
        let max = max.min(self.scratch.len());
        // SAFETY: `max` pointers fit into `scratch`; as many as are answered are ours afterwards.
        let count = unsafe {
            rd::rd_kafka_consume_batch_queue(self.queue.as_ptr(), 0, self.scratch.as_mut_ptr(), max)
        };
        let count = usize::try_from(count).unwrap_or(0);
        self.held.extend(self.scratch[..count].iter().map(|pointer| Message(*pointer)));
        count
    }
}

/// What records are made of messages.
struct Converted {
    input: u16,
    /// The first offset that counts.
    from: i64,
    headers: bool,
}

/// Copies the keys of messages into one buffer and their values into another, and makes records that share them. Keys are
/// looked at again and again, and lie close together so.
fn convert(
    messages: impl Iterator<Item = Message>,
    (key_bytes, value_bytes): (usize, usize),
    to: &Converted,
    into: &mut Vec<RawRecord>,
) -> (usize, usize) {
    let first = into.len();
    let (mut keys, mut values) = (BytesMut::with_capacity(key_bytes), BytesMut::with_capacity(value_bytes));
    let mut lengths: Vec<(Option<usize>, Option<usize>)> = Vec::with_capacity(messages.size_hint().0);
    let copy = |part: Option<&[u8]>, to: &mut BytesMut| {
        part.map(|part| {
            to.extend_from_slice(part);
            part.len()
        })
    };
    for message in messages.filter(|message| message.offset() >= to.from) {
        lengths.push((copy(message.key(), &mut keys), copy(message.value(), &mut values)));
        into.push(RawRecord {
            input: to.input,
            partition: message.partition(),
            offset: message.offset(),
            timestamp: message.timestamp(),
            key: None,
            value: None,
            headers: if to.headers { message.headers() } else { Headers::default() },
        });
    }
    let bytes = keys.len() + values.len();
    let (mut keys, mut values) = (keys.freeze(), values.freeze());
    for (record, (key, value)) in into[first..].iter_mut().zip(lengths) {
        record.key = key.map(|length| keys.split_to(length));
        record.value = value.map(|length| values.split_to(length));
    }
    (into.len() - first, bytes)
}
