//! The calls for which rdkafka has no fast counterpart: batches in, batches out, and a commit that does not wait
//! for its flush in steps of 100 ms.

use std::ffi::{CStr, CString};
use std::os::raw::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rdkafka::bindings as rd;
use rdkafka::producer::{BaseProducer, Producer as _};
use rdkafka::types::RDKafkaRespErr;

/// The queue of one partition, split from its consumer's.
pub(super) struct Queue {
    queue: NonNull<rd::rd_kafka_queue_t>,
}

// SAFETY: librdkafka's queues may be used by any thread; each operation takes the queue's own lock.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// Splits a partition's queue off. To be called before the partition is assigned, and dropped before the
    /// consumer.
    ///
    /// # Safety
    /// `client` is a live consumer and outlives the queue.
    pub(super) unsafe fn split(
        client: *mut rd::rd_kafka_t,
        topic: &str,
        partition: i32,
    ) -> anyhow::Result<Queue> {
        let topic = CString::new(topic)?;
        // SAFETY: the client is live, the name is terminated and copied by the call.
        let queue = unsafe { rd::rd_kafka_queue_get_partition(client, topic.as_ptr(), partition) };
        let queue = NonNull::new(queue).context("no such partition")?;
        // SAFETY: the queue was just made and is ours; forwarding to null ends the forwarding.
        unsafe { rd::rd_kafka_queue_forward(queue.as_ptr(), ptr::null_mut()) };
        Ok(Queue { queue })
    }

    /// The queue of all of a consumer's partitions that have none of their own. Dropped before the consumer.
    ///
    /// # Safety
    /// `client` is a live consumer and outlives the queue.
    pub(super) unsafe fn of_consumer(client: *mut rd::rd_kafka_t) -> anyhow::Result<Queue> {
        // SAFETY: the client is live.
        let queue = unsafe { rd::rd_kafka_queue_get_consumer(client) };
        Ok(Queue { queue: NonNull::new(queue).context("not a consumer")? })
    }

    /// Waits for records, at most `limit` long or until [`Queue::wake`], and takes what is there by then, at
    /// most `max`.
    pub(super) fn take<'a>(&self, limit: Duration, max: usize, into: &'a mut Taken) -> &'a [Message] {
        into.clear();
        // The call returns when it has as many as it was asked for: ask for those that are there.
        // SAFETY: the queue lives as long as `self`.
        let waiting = unsafe { rd::rd_kafka_queue_length(self.queue.as_ptr()) };
        let wanted = waiting.clamp(1, max);
        into.messages.reserve(wanted);
        let limit = limit.as_micros().div_ceil(1000) as c_int;
        let room: *mut *mut rd::rd_kafka_message_t = into.messages.as_mut_ptr().cast();
        // SAFETY: there is room for `wanted` pointers, of which the call fills in as many as it returns; `Message`
        // is a transparent pointer.
        unsafe {
            let taken = rd::rd_kafka_consume_batch_queue(self.queue.as_ptr(), limit, room, wanted);
            into.messages.set_len(taken.max(0) as usize);
        }
        &into.messages
    }

    /// Lets a waiting [`Queue::take`] return.
    pub(super) fn wake(&self) {
        // SAFETY: the queue lives as long as `self`.
        unsafe { rd::rd_kafka_queue_yield(self.queue.as_ptr()) };
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the queue is ours and not used again.
        unsafe { rd::rd_kafka_queue_destroy(self.queue.as_ptr()) };
    }
}

/// Messages taken, destroyed at the next use.
#[derive(Default)]
pub(super) struct Taken {
    messages: Vec<Message>,
}

impl Taken {
    fn clear(&mut self) {
        self.messages.clear();
    }
}

// SAFETY: a message belongs to its owner alone, on whichever thread.
unsafe impl Send for Taken {}

/// One message, or an event in place of one.
#[repr(transparent)]
pub(super) struct Message {
    message: NonNull<rd::rd_kafka_message_t>,
}

/// What a message is.
pub(super) enum Kind {
    Record,
    EndOfPartition,
}

impl Message {
    fn raw(&self) -> &rd::rd_kafka_message_t {
        // SAFETY: librdkafka's message lives until it is destroyed in `drop`.
        unsafe { self.message.as_ref() }
    }

    pub(super) fn kind(&self) -> anyhow::Result<Kind> {
        match self.raw().err {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(Kind::Record),
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__PARTITION_EOF => Ok(Kind::EndOfPartition),
            error => bail!("reading failed: {error:?}"),
        }
    }

    pub(super) fn offset(&self) -> i64 {
        self.raw().offset
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        // SAFETY: null, or as many bytes as stated, which live as long as the message.
        unsafe { bytes(self.raw().key, self.raw().key_len) }
    }

    pub(super) fn value(&self) -> Option<&[u8]> {
        // SAFETY: as above.
        unsafe { bytes(self.raw().payload, self.raw().len) }
    }

    pub(super) fn timestamp(&self) -> i64 {
        // SAFETY: the message is live and the kind of timestamp may be left out.
        unsafe { rd::rd_kafka_message_timestamp(self.message.as_ptr(), ptr::null_mut()) }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: the message is ours and not used again.
        unsafe { rd::rd_kafka_message_destroy(self.message.as_ptr()) };
    }
}

/// # Safety
/// `start` is null or has `len` bytes that live for `'a`.
unsafe fn bytes<'a>(start: *const c_void, len: usize) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start.cast(), len) })
}

/// A topic to produce to. Dropped before its producer.
pub(super) struct Topic {
    topic: NonNull<rd::rd_kafka_topic_t>,
}

// SAFETY: librdkafka's topic handles may be used by any thread.
unsafe impl Send for Topic {}

impl Topic {
    pub(super) fn new(producer: &BaseProducer, name: &str) -> anyhow::Result<Topic> {
        let name = CString::new(name)?;
        // SAFETY: the producer is live; the name is copied; null takes the client's own topic settings.
        let topic =
            unsafe { rd::rd_kafka_topic_new(producer.client().native_ptr(), name.as_ptr(), ptr::null_mut()) };
        Ok(Topic { topic: NonNull::new(topic).context("can't make a topic handle")? })
    }

    /// Queues records with timestamps, each to the partition of its key.
    pub(super) fn produce<'a>(
        &self,
        producer: &BaseProducer,
        records: impl Iterator<Item = (&'a [u8], &'a [u8], i64)>,
    ) -> anyhow::Result<()> {
        use rd::rd_kafka_vtype_t as Tag;
        let field = |vtype, u| rd::rd_kafka_vu_t { vtype, u };
        let memory = |bytes: &[u8]| rd::rd_kafka_vu_s__bindgen_ty_1 {
            mem: rd::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
                ptr: bytes.as_ptr() as *mut c_void,
                size: bytes.len(),
            },
        };
        let mut fields = [
            field(Tag::RD_KAFKA_VTYPE_RKT, rd::rd_kafka_vu_s__bindgen_ty_1 { rkt: self.topic.as_ptr() }),
            field(
                Tag::RD_KAFKA_VTYPE_MSGFLAGS,
                rd::rd_kafka_vu_s__bindgen_ty_1 { i: rd::RD_KAFKA_MSG_F_COPY },
            ),
            field(Tag::RD_KAFKA_VTYPE_KEY, memory(&[])),
            field(Tag::RD_KAFKA_VTYPE_VALUE, memory(&[])),
            field(Tag::RD_KAFKA_VTYPE_TIMESTAMP, rd::rd_kafka_vu_s__bindgen_ty_1 { i64_: 0 }),
        ];
        let client = producer.client().native_ptr();
        for (key, value, timestamp) in records {
            fields[2].u = memory(key);
            fields[3].u = memory(value);
            fields[4].u.i64_ = timestamp;
            // SAFETY: each tag names the member of its union that is set; the bytes are copied by the call.
            succeed(unsafe { rd::rd_kafka_produceva(client, fields.as_ptr(), fields.len()) })
                .context("can't produce an output")?;
        }
        Ok(())
    }

    /// Queues records without timestamps (the client stamps them), all to one partition.
    pub(super) fn produce_batch<'a>(
        &self,
        partition: i32,
        records: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        room: &mut Outgoing,
    ) -> anyhow::Result<()> {
        room.messages.clear();
        room.messages.extend(records.map(|(key, value)| rd::rd_kafka_message_t {
            err: RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR,
            rkt: ptr::null_mut(),
            partition,
            payload: value.as_ptr() as *mut c_void,
            len: value.len(),
            key: key.as_ptr() as *mut c_void,
            key_len: key.len(),
            offset: 0,
            _private: ptr::null_mut(),
        }));
        let count = room.messages.len();
        // SAFETY: `count` messages whose bytes live until the call has copied them.
        let queued = unsafe {
            rd::rd_kafka_produce_batch(
                self.topic.as_ptr(),
                partition,
                rd::RD_KAFKA_MSG_F_COPY,
                room.messages.as_mut_ptr(),
                count as c_int,
            )
        };
        ensure!(
            queued as usize == count,
            "{} changelog records can't be queued",
            count - queued.max(0) as usize
        );
        Ok(())
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used again.
        unsafe { rd::rd_kafka_topic_destroy(self.topic.as_ptr()) };
    }
}

/// Room for the arguments of [`Topic::produce_batch`], used again from batch to batch.
#[derive(Default)]
pub(super) struct Outgoing {
    messages: Vec<rd::rd_kafka_message_t>,
}

// SAFETY: between calls the pointers in it are never followed.
unsafe impl Send for Outgoing {}

/// Commits, in slices, serving the producer's events between them.
pub fn commit(producer: &BaseProducer, limit: Duration) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        // SAFETY: the producer is live; the answer is taken over by `succeed`.
        let answer = unsafe { rd::rd_kafka_commit_transaction(producer.client().native_ptr(), 200) };
        // SAFETY: null or a live error.
        let retriable = !answer.is_null() && unsafe { rd::rd_kafka_error_is_retriable(answer) } != 0;
        match succeed(answer) {
            Err(_) if retriable && started.elapsed() < limit => producer.poll(Duration::ZERO),
            result => return result.context("can't commit"),
        };
    }
}

fn succeed(answer: *mut rd::rd_kafka_error_t) -> anyhow::Result<()> {
    if answer.is_null() {
        return Ok(());
    }
    // SAFETY: a live error, which is ours to destroy, and whose text is copied before.
    unsafe {
        let text = CStr::from_ptr(rd::rd_kafka_error_string(answer)).to_string_lossy().into_owned();
        rd::rd_kafka_error_destroy(answer);
        bail!(text)
    }
}
