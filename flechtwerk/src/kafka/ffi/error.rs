//! librdkafka's errors, copied out.

use std::ffi::NulError;

use rdkafka::bindings as rd;
use rdkafka::bindings::rd_kafka_resp_err_t as E;

use super::{raw, text};

/// The codes that anybody here asks for by name.
pub(crate) mod code {
    use rdkafka::bindings::rd_kafka_resp_err_t as E;

    macro_rules! codes {
        ($($name:ident = $native:ident,)*) => { $(pub(crate) const $name: i32 = E::$native as i32;)* };
    }

    codes! {
        LOCAL_DESTROY = RD_KAFKA_RESP_ERR__DESTROY,
        LOCAL_TRANSPORT = RD_KAFKA_RESP_ERR__TRANSPORT,
        LOCAL_RESOLVE = RD_KAFKA_RESP_ERR__RESOLVE,
        LOCAL_PARTITION_EOF = RD_KAFKA_RESP_ERR__PARTITION_EOF,
        LOCAL_UNKNOWN_PARTITION = RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
        LOCAL_UNKNOWN_TOPIC = RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
        LOCAL_ALL_BROKERS_DOWN = RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN,
        LOCAL_INVALID_ARG = RD_KAFKA_RESP_ERR__INVALID_ARG,
        LOCAL_TIMED_OUT = RD_KAFKA_RESP_ERR__TIMED_OUT,
        LOCAL_QUEUE_FULL = RD_KAFKA_RESP_ERR__QUEUE_FULL,
        LOCAL_SSL = RD_KAFKA_RESP_ERR__SSL,
        LOCAL_WAIT_COORD = RD_KAFKA_RESP_ERR__WAIT_COORD,
        LOCAL_IN_PROGRESS = RD_KAFKA_RESP_ERR__IN_PROGRESS,
        LOCAL_ASSIGN_PARTITIONS = RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS,
        LOCAL_REVOKE_PARTITIONS = RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS,
        LOCAL_STATE = RD_KAFKA_RESP_ERR__STATE,
        LOCAL_AUTHENTICATION = RD_KAFKA_RESP_ERR__AUTHENTICATION,
        LOCAL_TIMED_OUT_QUEUE = RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE,
        LOCAL_UNSUPPORTED_FEATURE = RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE,
        LOCAL_WAIT_CACHE = RD_KAFKA_RESP_ERR__WAIT_CACHE,
        LOCAL_RETRY = RD_KAFKA_RESP_ERR__RETRY,
        LOCAL_PURGE_QUEUE = RD_KAFKA_RESP_ERR__PURGE_QUEUE,
        LOCAL_PURGE_INFLIGHT = RD_KAFKA_RESP_ERR__PURGE_INFLIGHT,
        LOCAL_INCONSISTENT = RD_KAFKA_RESP_ERR__INCONSISTENT,
        LOCAL_FATAL = RD_KAFKA_RESP_ERR__FATAL,
        LOCAL_FENCED = RD_KAFKA_RESP_ERR__FENCED,
        LOCAL_AUTO_OFFSET_RESET = RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET,
        NO_ERROR = RD_KAFKA_RESP_ERR_NO_ERROR,
        OFFSET_OUT_OF_RANGE = RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE,
        UNKNOWN_TOPIC_OR_PART = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
        LEADER_NOT_AVAILABLE = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        NOT_LEADER = RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        REQUEST_TIMED_OUT = RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        BROKER_NOT_AVAILABLE = RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE,
        REPLICA_NOT_AVAILABLE = RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
        MSG_SIZE_TOO_LARGE = RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
        OFFSET_METADATA_TOO_LARGE = RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE,
        NETWORK_EXCEPTION = RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION,
        COORDINATOR_LOAD_IN_PROGRESS = RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
        COORDINATOR_NOT_AVAILABLE = RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
        NOT_COORDINATOR = RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
        INVALID_TOPIC = RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION,
        RECORD_LIST_TOO_LARGE = RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
        NOT_ENOUGH_REPLICAS = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ILLEGAL_GENERATION = RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION,
        INVALID_GROUP_ID = RD_KAFKA_RESP_ERR_INVALID_GROUP_ID,
        UNKNOWN_MEMBER_ID = RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
        INVALID_SESSION_TIMEOUT = RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT,
        REBALANCE_IN_PROGRESS = RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
        TOPIC_AUTHORIZATION_FAILED = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        GROUP_AUTHORIZATION_FAILED = RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
        CLUSTER_AUTHORIZATION_FAILED = RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
        INVALID_TIMESTAMP = RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,
        UNSUPPORTED_SASL_MECHANISM = RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM,
        UNSUPPORTED_VERSION = RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION,
        TOPIC_ALREADY_EXISTS = RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS,
        INVALID_PARTITIONS = RD_KAFKA_RESP_ERR_INVALID_PARTITIONS,
        INVALID_REPLICATION_FACTOR = RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR,
        INVALID_CONFIG = RD_KAFKA_RESP_ERR_INVALID_CONFIG,
        NOT_CONTROLLER = RD_KAFKA_RESP_ERR_NOT_CONTROLLER,
        INVALID_REQUEST = RD_KAFKA_RESP_ERR_INVALID_REQUEST,
        POLICY_VIOLATION = RD_KAFKA_RESP_ERR_POLICY_VIOLATION,
        INVALID_PRODUCER_EPOCH = RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
        INVALID_TRANSACTION_TIMEOUT = RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT,
        CONCURRENT_TRANSACTIONS = RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED = RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KAFKA_STORAGE_ERROR = RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
        SASL_AUTHENTICATION_FAILED = RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
        NON_EMPTY_GROUP = RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP,
        GROUP_ID_NOT_FOUND = RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND,
        FENCED_LEADER_EPOCH = RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH = RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH,
        UNSUPPORTED_COMPRESSION_TYPE = RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE,
        OFFSET_NOT_AVAILABLE = RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE,
        FENCED_INSTANCE_ID = RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID,
        INVALID_RECORD = RD_KAFKA_RESP_ERR_INVALID_RECORD,
        UNSTABLE_OFFSET_COMMIT = RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT,
        THROTTLING_QUOTA_EXCEEDED = RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
        PRODUCER_FENCED = RD_KAFKA_RESP_ERR_PRODUCER_FENCED,
        UNKNOWN_TOPIC_ID = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID,
    }
}

/// What librdkafka answered.
#[derive(Clone, Debug)]
pub(crate) struct NativeError {
    pub(crate) code: i32,
    /// Its own words; may be empty.
    pub(crate) text: String,
    /// The client is unusable.
    pub(crate) fatal: bool,
    /// The same call may succeed later.
    pub(crate) retriable: bool,
    /// The transaction must be aborted.
    pub(crate) abortable: bool,
}

impl NativeError {
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), fatal: false, retriable: false, abortable: false }
    }

    /// The code's name, as `ILLEGAL_GENERATION` or `_TIMED_OUT`.
    pub(crate) fn name(&self) -> String {
        // SAFETY: any integer is looked up in a table; the answer is a static string.
        text(unsafe { raw::rd_kafka_err2name(self.code) })
    }
}

impl From<NulError> for NativeError {
    fn from(_: NulError) -> Self {
        Self::new(code::LOCAL_INVALID_ARG, "a name contains a NUL byte")
    }
}

/// The error of a plain code.
pub(super) fn check(code: E) -> Result<(), NativeError> {
    check_number(code as i32)
}

/// The error of a plain code that is a number, since it may lie outside of the enum.
pub(super) fn check_number(number: i32) -> Result<(), NativeError> {
    if number == code::NO_ERROR { Ok(()) } else { Err(NativeError::new(number, describe(number))) }
}

/// librdkafka's description of a code.
pub(crate) fn describe(number: i32) -> String {
    // SAFETY: as above.
    text(unsafe { raw::rd_kafka_err2str(number) })
}

/// Copies an error and destroys it; null is success.
pub(super) fn take(error: *mut rd::rd_kafka_error_t) -> Result<(), NativeError> {
    let copied = copy(error);
    if !error.is_null() {
        // SAFETY: ours by the contract of the calls that return one, and not used afterwards.
        unsafe { rd::rd_kafka_error_destroy(error) };
    }
    copied
}

/// Copies an error that belongs to somebody else; null is success.
pub(super) fn copy(error: *const rd::rd_kafka_error_t) -> Result<(), NativeError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: not null, and alive for the duration of this function.
    unsafe {
        let number = raw::rd_kafka_error_code(error);
        if number == code::NO_ERROR {
            return Ok(());
        }
        Err(NativeError {
            code: number,
            text: text(rd::rd_kafka_error_string(error)),
            fatal: rd::rd_kafka_error_is_fatal(error) != 0,
            retriable: rd::rd_kafka_error_is_retriable(error) != 0,
            abortable: rd::rd_kafka_error_txn_requires_abort(error) != 0,
        })
    }
}
