//! The client itself: made, asked for metadata, destroyed.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as rd;

use super::error::{self, NativeError, code};
use super::watch::{self, Watch};
use super::{millis, raw, text};

/// What kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its delivery reports and errors come as events on the main queue.
    Producer,
    /// Everything comes on the consumer queue; assigning and revoking is left to us.
    Consumer,
}

/// A client of librdkafka. Destroying it never waits for a group to be left: whoever joined one leaves it first.
pub(crate) struct Handle {
    rk: *mut rd::rd_kafka_t,
    /// Behind `rk` in the order of drops: the interceptors use it until the client is destroyed.
    watch: Arc<Watch>,
}

// SAFETY: librdkafka's clients are made for use by many threads at once.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Makes a client. The error names the setting, never its value.
    pub(crate) fn new<'a>(
        kind: Kind,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Arc<Self>, NativeError> {
        let watch = Arc::new(Watch::default());
        let conf = Conf::new();
        for (name, value) in settings {
            conf.set(name, value)?;
        }
        conf.set("log.queue", "true")?;
        let (events, kind) = match kind {
            Kind::Producer => {
                (rd::RD_KAFKA_EVENT_DR | rd::RD_KAFKA_EVENT_ERROR, rd::rd_kafka_type_t::RD_KAFKA_PRODUCER)
            }
            Kind::Consumer => (
                rd::RD_KAFKA_EVENT_REBALANCE | rd::RD_KAFKA_EVENT_ERROR,
                rd::rd_kafka_type_t::RD_KAFKA_CONSUMER,
            ),
        };
        error::check(watch::install(conf.0, &watch))?;
        let mut reason = [0; 512];
        // SAFETY: `rd_kafka_new` takes over the configuration if and only if it succeeds. The log queue is set
        // before anything else is asked of the client.
        unsafe {
            rd::rd_kafka_conf_set_events(conf.0, events);
            let rk = rd::rd_kafka_new(kind, conf.0, reason.as_mut_ptr(), reason.len());
            if rk.is_null() {
                return Err(NativeError::new(code::LOCAL_INVALID_ARG, text(reason.as_ptr())));
            }
            std::mem::forget(conf);
            let handle = Self { rk, watch };
            if kind == rd::rd_kafka_type_t::RD_KAFKA_CONSUMER {
                error::check(rd::rd_kafka_poll_set_consumer(rk))?;
            }
            let main = rd::rd_kafka_queue_get_main(rk);
            let set = rd::rd_kafka_set_log_queue(rk, main);
            rd::rd_kafka_queue_destroy(main);
            error::check(set)?;
            Ok(Arc::new(handle))
        }
    }

    /// The counters of requests.
    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The error that made the client unusable, if there was one.
    pub(crate) fn fatal_error(&self) -> Option<NativeError> {
        let mut reason = [0; 512];
        // SAFETY: the buffer is as long as said and is NUL-terminated by the call.
        let number = unsafe { raw::rd_kafka_fatal_error(self.rk, reason.as_mut_ptr(), reason.len()) };
        (number != code::NO_ERROR)
            .then(|| NativeError { fatal: true, ..NativeError::new(number, text(reason.as_ptr())) })
    }

    /// Asks a broker for metadata of one topic, or of none; answers the number of brokers.
    pub(crate) fn metadata(&self, topic: Option<&str>, limit: Duration) -> Result<usize, NativeError> {
        let topic = topic.map(CString::new).transpose()?;
        let mut metadata = std::ptr::null();
        // SAFETY: the topic handle is destroyed after the call, the answer after it was read.
        unsafe {
            let topic = topic.map_or(std::ptr::null_mut(), |name| {
                rd::rd_kafka_topic_new(self.rk, name.as_ptr(), std::ptr::null_mut())
            });
            let result = raw::rd_kafka_metadata(self.rk, 0, topic, &mut metadata, millis(limit));
            if !topic.is_null() {
                rd::rd_kafka_topic_destroy(topic);
            }
            error::check_number(result)?;
            let brokers = usize::try_from((*metadata).broker_cnt).unwrap_or(0);
            rd::rd_kafka_metadata_destroy(metadata);
            Ok(brokers)
        }
    }

    /// Low watermark and end as the client's isolation level sees it: under `read_committed` the last stable
    /// offset.
    pub(crate) fn watermarks(
        &self,
        topic: &str,
        partition: i32,
        limit: Duration,
    ) -> Result<(i64, i64), NativeError> {
        let topic = CString::new(topic)?;
        let (mut low, mut end) = (0, 0);
        // SAFETY: the out parameters live through the call.
        let result = unsafe {
            raw::rd_kafka_query_watermark_offsets(
                self.rk,
                topic.as_ptr(),
                partition,
                &mut low,
                &mut end,
                millis(limit),
            )
        };
        error::check_number(result)?;
        Ok((low, end))
    }

    pub(super) fn as_ptr(&self) -> *mut rd::rd_kafka_t {
        self.rk
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the last owner; queues, topics and messages hold an `Arc` of this and are gone. After this call
        // no thread of the client runs, so `watch` may be freed.
        unsafe {
            rd::rd_kafka_destroy_flags(self.rk, rd::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        }
    }
}

/// A configuration until a client takes it over.
struct Conf(*mut rd::rd_kafka_conf_t);

impl Conf {
    fn new() -> Self {
        // SAFETY: allocates.
        Self(unsafe { rd::rd_kafka_conf_new() })
    }

    fn set(&self, name: &str, value: &str) -> Result<(), NativeError> {
        let (native_name, native_value) = (CString::new(name)?, CString::new(value)?);
        // SAFETY: both strings live through the call. The reason is not asked for: it may repeat the value.
        let result = unsafe {
            rd::rd_kafka_conf_set(
                self.0,
                native_name.as_ptr(),
                native_value.as_ptr(),
                std::ptr::null_mut(),
                0,
            )
        };
        match result {
            rd::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK => Ok(()),
            rd::rd_kafka_conf_res_t::RD_KAFKA_CONF_UNKNOWN => Err(NativeError::new(
                code::LOCAL_INVALID_ARG,
                format!("the client has no setting `{name}`; remove it or mend its name"),
            )),
            rd::rd_kafka_conf_res_t::RD_KAFKA_CONF_INVALID => Err(NativeError::new(
                code::LOCAL_INVALID_ARG,
                format!(
                    "the value of the client setting `{name}` is not one that it takes, or this build lacks it"
                ),
            )),
        }
    }
}

impl Drop for Conf {
    fn drop(&mut self) {
        // SAFETY: ours; forgotten where a client took it over.
        unsafe { rd::rd_kafka_conf_destroy(self.0) };
    }
}
