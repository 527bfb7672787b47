//! Functions that take or give error codes, declared anew with plain integers.
//!
//! The bindings declare an enum there. A broker that is newer than the client answers with codes that the enum
//! lacks, and librdkafka passes them on: as a value of the enum they would be undefined behaviour.

use std::ffi::{c_char, c_int};

use rdkafka::bindings as rd;

unsafe extern "C" {
    pub(super) fn rd_kafka_err2name(code: c_int) -> *const c_char;
    pub(super) fn rd_kafka_err2str(code: c_int) -> *const c_char;
    pub(super) fn rd_kafka_error_code(error: *const rd::rd_kafka_error_t) -> c_int;
    pub(super) fn rd_kafka_event_error(event: *mut rd::rd_kafka_event_t) -> c_int;
    pub(super) fn rd_kafka_topic_result_error(result: *const rd::rd_kafka_topic_result_t) -> c_int;
    pub(super) fn rd_kafka_ConfigResource_error(resource: *const rd::rd_kafka_ConfigResource_t) -> c_int;
    pub(super) fn rd_kafka_fatal_error(rk: *mut rd::rd_kafka_t, text: *mut c_char, size: usize) -> c_int;
    pub(super) fn rd_kafka_metadata(
        rk: *mut rd::rd_kafka_t,
        all_topics: c_int,
        topic: *mut rd::rd_kafka_topic_t,
        metadata: *mut *const rd::rd_kafka_metadata,
        timeout_ms: c_int,
    ) -> c_int;
    pub(super) fn rd_kafka_query_watermark_offsets(
        rk: *mut rd::rd_kafka_t,
        topic: *const c_char,
        partition: i32,
        low: *mut i64,
        high: *mut i64,
        timeout_ms: c_int,
    ) -> c_int;
    pub(super) fn rd_kafka_committed(
        rk: *mut rd::rd_kafka_t,
        partitions: *mut rd::rd_kafka_topic_partition_list_t,
        timeout_ms: c_int,
    ) -> c_int;
    pub(super) fn rd_kafka_list_groups(
        rk: *mut rd::rd_kafka_t,
        group: *const c_char,
        list: *mut *const rd::rd_kafka_group_list,
        timeout_ms: c_int,
    ) -> c_int;
}
