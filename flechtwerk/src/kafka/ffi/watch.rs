//! Counts requests that were sent and never answered, through librdkafka's request interceptors.
//!
//! librdkafka retries a request whose answer never came. The lost original may still reach the broker, and hit
//! a later transaction (S3.7). Nothing in the API or the statistics tells; the interceptors do.
//!
//! A broker thread of librdkafka serves one connection of one client, so "open" is counted per thread. A
//! response with nothing open on its thread is either the second call for the same response (on the client's
//! main thread) or a request that failed before it was written: both are no news.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use rdkafka::bindings as rd;
use rdkafka::bindings::rd_kafka_resp_err_t as E;

/// The requests that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Api {
    Produce,
    JoinGroup,
    LeaveGroup,
    InitProducerId,
    EndTxn,
    TxnOffsetCommit,
}

const APIS: usize = 6;

/// Kafka's numbers of the requests.
fn api_of(key: i16) -> Option<usize> {
    match key {
        0 => Some(Api::Produce as usize),
        11 => Some(Api::JoinGroup as usize),
        13 => Some(Api::LeaveGroup as usize),
        22 => Some(Api::InitProducerId as usize),
        26 => Some(Api::EndTxn as usize),
        28 => Some(Api::TxnOffsetCommit as usize),
        _ => None,
    }
}

thread_local! {
    static OPEN: [Cell<u32>; APIS] = const { [const { Cell::new(0) }; APIS] };
}

/// The counters of one client.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    sent: [AtomicU32; APIS],
    answered: [AtomicU32; APIS],
    lost: [AtomicU32; APIS],
}

impl Watch {
    /// Written to a socket, ever.
    pub(crate) fn sent(&self, api: Api) -> u32 {
        self.sent[api as usize].load(SeqCst)
    }

    /// Answered, ever.
    pub(crate) fn answered(&self, api: Api) -> u32 {
        self.answered[api as usize].load(SeqCst)
    }

    /// Given up on without an answer, ever: time-out or disconnect.
    pub(crate) fn lost(&self, api: Api) -> u32 {
        self.lost[api as usize].load(SeqCst)
    }

    /// Sent and neither answered nor lost at this moment.
    pub(crate) fn open(&self, api: Api) -> u32 {
        // What is done is read first: it can only be less than what was sent afterwards.
        let done = self.answered(api).wrapping_add(self.lost(api));
        self.sent(api).wrapping_sub(done)
    }

    fn on_sent(&self, key: i16) {
        let Some(api) = api_of(key) else { return };
        OPEN.with(|open| open[api].set(open[api].get() + 1));
        self.sent[api].fetch_add(1, SeqCst);
        #[cfg(feature = "crash-points")]
        crate::crash::sent(key);
    }

    fn on_response(&self, key: i16, failed: bool) {
        let Some(api) = api_of(key) else { return };
        let mine = OPEN.with(|open| {
            let count = open[api].get();
            open[api].set(count.saturating_sub(1));
            count > 0
        });
        if mine {
            let counters = if failed { &self.lost } else { &self.answered };
            counters[api].fetch_add(1, SeqCst);
            #[cfg(feature = "crash-points")]
            if !failed {
                crate::crash::answered(key);
            }
        }
    }
}

/// Has the client that is made of `conf` count into `watch`, which must outlive that client.
pub(super) fn install(conf: *mut rd::rd_kafka_conf_t, watch: &Watch) -> E {
    let opaque = std::ptr::from_ref(watch).cast_mut().cast::<c_void>();
    // SAFETY: `conf` is a live configuration; the callbacks only read `opaque`, which `Handle` keeps until the
    // client is destroyed.
    unsafe { rd::rd_kafka_conf_interceptor_add_on_new(conf, c"watch".as_ptr(), Some(on_new), opaque) }
}

unsafe extern "C" fn on_new(
    rk: *mut rd::rd_kafka_t,
    _: *const rd::rd_kafka_conf_t,
    opaque: *mut c_void,
    _: *mut c_char,
    _: usize,
) -> E {
    // SAFETY: called by `rd_kafka_new` with the client being made; this is the only place where it is allowed
    // to add these two.
    unsafe {
        let first =
            rd::rd_kafka_interceptor_add_on_request_sent(rk, c"watch".as_ptr(), Some(on_sent), opaque);
        if first as i32 != 0 {
            return first;
        }
        rd::rd_kafka_interceptor_add_on_response_received(rk, c"watch".as_ptr(), Some(on_response), opaque)
    }
}

unsafe extern "C" fn on_sent(
    _: *mut rd::rd_kafka_t,
    _: c_int,
    _: *const c_char,
    _: i32,
    key: i16,
    _: i16,
    _: i32,
    _: usize,
    opaque: *mut c_void,
) -> E {
    // SAFETY: `opaque` is the `Watch` given to `install`, alive as long as the client.
    unsafe { &*opaque.cast::<Watch>() }.on_sent(key);
    E::RD_KAFKA_RESP_ERR_NO_ERROR
}

unsafe extern "C" fn on_response(
    _: *mut rd::rd_kafka_t,
    _: c_int,
    _: *const c_char,
    _: i32,
    key: i16,
    _: i16,
    _: i32,
    _: usize,
    _: i64,
    err: E,
    opaque: *mut c_void,
) -> E {
    // SAFETY: as in `on_sent`.
    unsafe { &*opaque.cast::<Watch>() }.on_response(key, err as i32 != 0);
    E::RD_KAFKA_RESP_ERR_NO_ERROR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_request_once() {
        let watch = Watch::default();
        watch.on_sent(26);
        watch.on_sent(26);
        assert_eq!(watch.open(Api::EndTxn), 2);
        watch.on_response(26, false);
        watch.on_response(26, true);
        // The echo on the main thread, and a late answer without a known request.
        std::thread::scope(|scope| {
            scope.spawn(|| watch.on_response(26, false));
        });
        watch.on_response(26, false);
        watch.on_response(-1, false);
        assert_eq!(
            (watch.sent(Api::EndTxn), watch.answered(Api::EndTxn), watch.lost(Api::EndTxn)),
            (2, 1, 1)
        );
        assert_eq!(watch.open(Api::EndTxn), 0);
    }
}
