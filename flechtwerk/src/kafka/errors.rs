//! From librdkafka's errors to what may be done about them (S6.2).

use super::ffi::{Delivery, Handle, NativeError, code};
use crate::port::{BrokerError, ErrorKind};

/// What a code means wherever it turns up; `None` where that depends on the call.
fn kind_of(number: i32) -> Option<ErrorKind> {
    Some(match number {
        code::ILLEGAL_GENERATION | code::UNKNOWN_MEMBER_ID | code::REBALANCE_IN_PROGRESS => ErrorKind::Generation,
        code::FENCED_INSTANCE_ID => ErrorKind::FencedInstance,
        code::LOCAL_FENCED | code::PRODUCER_FENCED | code::INVALID_PRODUCER_EPOCH => ErrorKind::Fenced,
        code::MSG_SIZE_TOO_LARGE
        | code::RECORD_LIST_TOO_LARGE
        | code::INVALID_RECORD
        | code::INVALID_TIMESTAMP
        | code::INVALID_TOPIC
        | code::INVALID_PARTITIONS
        | code::INVALID_REPLICATION_FACTOR
        | code::INVALID_CONFIG
        | code::INVALID_REQUEST
        | code::INVALID_GROUP_ID
        | code::INVALID_SESSION_TIMEOUT
        | code::INVALID_TRANSACTION_TIMEOUT
        | code::OFFSET_METADATA_TOO_LARGE
        | code::OFFSET_OUT_OF_RANGE
        | code::POLICY_VIOLATION
        | code::TOPIC_AUTHORIZATION_FAILED
        | code::GROUP_AUTHORIZATION_FAILED
        | code::CLUSTER_AUTHORIZATION_FAILED
        | code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        | code::SASL_AUTHENTICATION_FAILED
        | code::UNSUPPORTED_SASL_MECHANISM
        | code::UNSUPPORTED_VERSION
        | code::UNSUPPORTED_COMPRESSION_TYPE
        | code::NON_EMPTY_GROUP
        | code::UNKNOWN_TOPIC_OR_PART
        | code::UNKNOWN_TOPIC_ID
        | code::LOCAL_UNKNOWN_TOPIC
        | code::LOCAL_UNKNOWN_PARTITION
        | code::LOCAL_UNSUPPORTED_FEATURE
        | code::LOCAL_INVALID_ARG
        | code::LOCAL_AUTO_OFFSET_RESET => ErrorKind::Hopeless,
        // The client has been closed.
        code::LOCAL_DESTROY => ErrorKind::Fatal,
        code::LOCAL_TIMED_OUT | code::LOCAL_TIMED_OUT_QUEUE | code::REQUEST_TIMED_OUT => ErrorKind::TimedOut,
        code::LOCAL_TRANSPORT
        | code::LOCAL_RESOLVE
        | code::LOCAL_ALL_BROKERS_DOWN
        | code::LOCAL_WAIT_COORD
        | code::LOCAL_WAIT_CACHE
        | code::LOCAL_IN_PROGRESS
        | code::LOCAL_RETRY
        // Credentials and certificates are often late, and the client goes on trying.
        | code::LOCAL_AUTHENTICATION
        | code::LOCAL_SSL
        | code::LEADER_NOT_AVAILABLE
        | code::NOT_LEADER
        | code::BROKER_NOT_AVAILABLE
        | code::REPLICA_NOT_AVAILABLE
        | code::NETWORK_EXCEPTION
        | code::COORDINATOR_LOAD_IN_PROGRESS
        | code::COORDINATOR_NOT_AVAILABLE
        | code::NOT_COORDINATOR
        | code::NOT_CONTROLLER
        | code::NOT_ENOUGH_REPLICAS
        | code::NOT_ENOUGH_REPLICAS_AFTER_APPEND
        | code::CONCURRENT_TRANSACTIONS
        | code::KAFKA_STORAGE_ERROR
        | code::FENCED_LEADER_EPOCH
        | code::UNKNOWN_LEADER_EPOCH
        | code::OFFSET_NOT_AVAILABLE
        | code::UNSTABLE_OFFSET_COMMIT
        | code::THROTTLING_QUOTA_EXCEEDED => ErrorKind::Retriable,
        _ => return None,
    })
}

/// An error of a call outside of transactions; `otherwise` is for codes that mean nothing by themselves.
pub(super) fn broker_error(error: NativeError, otherwise: ErrorKind) -> BrokerError {
    let kind = match kind_of(error.code) {
        Some(kind @ (ErrorKind::FencedInstance | ErrorKind::Fenced | ErrorKind::Hopeless)) => kind,
        _ if error.fatal => ErrorKind::Fatal,
        Some(kind) => kind,
        None if error.retriable => ErrorKind::Retriable,
        None => otherwise,
    };
    BrokerError { kind, code: error.name(), text: error.text, output: None, size: None }
}

/// An error of a transactional call. librdkafka says itself what may be done; only what no repetition can mend,
/// and whose fault it is, is read off the code.
pub(super) fn txn_error(error: NativeError, handle: &Handle) -> BrokerError {
    // `_FATAL` hides the error that made the client unusable.
    let error = match error.code {
        code::LOCAL_FATAL => handle.fatal_error().unwrap_or(error),
        _ => error,
    };
    let kind = match kind_of(error.code) {
        Some(kind @ (ErrorKind::FencedInstance | ErrorKind::Fenced | ErrorKind::Hopeless)) => kind,
        _ if error.fatal => ErrorKind::Fatal,
        Some(ErrorKind::Generation) => ErrorKind::Generation,
        _ if error.abortable => ErrorKind::Abortable,
        Some(ErrorKind::TimedOut) if error.retriable => ErrorKind::TimedOut,
        _ if error.retriable => ErrorKind::Retriable,
        // Neither fatal, abortable nor retriable: a wrong state, which no call mends.
        _ => ErrorKind::Fatal,
    };
    BrokerError { kind, code: error.name(), text: error.text, output: None, size: None }
}

/// A record that was refused at once or not delivered.
pub(super) fn record_error(delivery: &Delivery, text: String, handle: &Handle) -> BrokerError {
    let fatal = (delivery.code == code::LOCAL_FATAL).then(|| handle.fatal_error()).flatten();
    let error = fatal.unwrap_or_else(|| NativeError::new(delivery.code, text));
    let kind = match kind_of(error.code) {
        Some(kind @ (ErrorKind::Fenced | ErrorKind::Hopeless)) => kind,
        _ if error.fatal => ErrorKind::Fatal,
        // Whatever else it is: the transaction lacks a record.
        _ => ErrorKind::Abortable,
    };
    let topic = &delivery.topic;
    let size = delivery.size;
    let text = match error.code {
        code::MSG_SIZE_TOO_LARGE | code::RECORD_LIST_TOO_LARGE => format!(
            "a record of {size} bytes, or the batch it was sent in, is too large for topic `{topic}`; make it \
             smaller, raise `max.message.bytes` of the topic and `message.max.bytes` of the client, or, if the \
             record is far from that limit, lower `batch.size` of the client"
        ),
        code::UNKNOWN_TOPIC_OR_PART | code::LOCAL_UNKNOWN_TOPIC | code::UNKNOWN_TOPIC_ID => {
            format!("topic `{topic}` does not exist; create it or mend its name")
        }
        code::LOCAL_UNKNOWN_PARTITION => {
            format!(
                "topic `{topic}` does not have the partition that a record asks for; add partitions or mend the record"
            )
        }
        code::TOPIC_AUTHORIZATION_FAILED => {
            format!("writing to topic `{topic}` is not allowed; grant WRITE on it to this client's principal")
        }
        code::INVALID_RECORD => format!(
            "the broker refuses a record of {size} bytes for topic `{topic}`; a compacted topic takes no null keys"
        ),
        _ => format!("a record of {size} bytes for topic `{topic}` was not delivered: {}", error.text),
    };
    let output = delivery.tag.checked_sub(1);
    BrokerError { kind, code: error.name(), text, output, size: Some(size) }
}
