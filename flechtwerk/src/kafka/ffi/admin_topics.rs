//! Requests of the admin API about topics.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as rd;
use rdkafka::bindings::rd_kafka_admin_op_t as Op;

use super::admin::{Names, Options, ask, slice};
use super::error::{self, NativeError, code};
use super::{Handle, raw, text};

/// One answer for each of several topics, by name.
type PerTopic<T> = Vec<(String, Result<T, NativeError>)>;

/// A topic to create.
pub(crate) struct TopicSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) partitions: i32,
    /// -1: the broker's default.
    pub(crate) replication_factor: i32,
    pub(crate) config: &'a BTreeMap<String, String>,
}

/// A topic as it is.
#[derive(Clone, Debug)]
pub(crate) struct TopicState {
    pub(crate) partitions: i32,
    /// Unpadded URL-safe base64.
    pub(crate) id: String,
    /// Every partition has a leader.
    pub(crate) led: bool,
}

/// The results of topic requests by name.
///
/// # Safety
/// The results are alive.
unsafe fn topic_results(results: *mut *const rd::rd_kafka_topic_result_t, count: usize) -> PerTopic<()> {
    // SAFETY: by the caller.
    unsafe {
        slice(results, count)
            .iter()
            .map(|result| {
                let name = text(rd::rd_kafka_topic_result_name(*result));
                let outcome = error::check_number(raw::rd_kafka_topic_result_error(*result));
                (
                    name,
                    outcome.map_err(|error| reason(error, rd::rd_kafka_topic_result_error_string(*result))),
                )
            })
            .collect()
    }
}

/// The error with the broker's own words, where it gave any.
fn reason(error: NativeError, words: *const c_char) -> NativeError {
    let words = text(words);
    if words.is_empty() { error } else { NativeError { text: words, ..error } }
}

impl Handle {
    /// Creates topics; one result each, by name.
    pub(crate) fn create_topics(
        self: &Arc<Self>,
        topics: &[TopicSpec<'_>],
        limit: Duration,
    ) -> Result<PerTopic<()>, NativeError> {
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_CREATETOPICS, limit)?;
        let mut natives = NewTopics(Vec::new());
        for topic in topics {
            natives.push(topic)?;
        }
        // SAFETY: the topics live through the call, which copies them; the results as long as the answer.
        unsafe {
            let answer = ask(self, &options, limit, |rk, options, queue| {
                rd::rd_kafka_CreateTopics(rk, natives.0.as_mut_ptr(), natives.0.len(), options, queue);
            })?;
            let result = rd::rd_kafka_event_CreateTopics_result(answer.0);
            let mut count = 0;
            let results = rd::rd_kafka_CreateTopics_result_topics(result, &mut count);
            Ok(topic_results(results, count))
        }
    }

    /// Deletes topics; one result each, by name.
    pub(crate) fn delete_topics(
        self: &Arc<Self>,
        topics: &[Arc<str>],
        limit: Duration,
    ) -> Result<PerTopic<()>, NativeError> {
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_DELETETOPICS, limit)?;
        let names = Names::new(topics.iter().map(AsRef::as_ref))?;
        // SAFETY: as above; the topics are destroyed after the call, which copies them.
        unsafe {
            let mut natives: Vec<_> =
                names.1.iter().map(|name| rd::rd_kafka_DeleteTopic_new(*name)).collect();
            let answer = ask(self, &options, limit, |rk, options, queue| {
                rd::rd_kafka_DeleteTopics(rk, natives.as_mut_ptr(), natives.len(), options, queue);
            });
            rd::rd_kafka_DeleteTopic_destroy_array(natives.as_mut_ptr(), natives.len());
            let answer = answer?;
            let result = rd::rd_kafka_event_DeleteTopics_result(answer.0);
            let mut count = 0;
            let results = rd::rd_kafka_DeleteTopics_result_topics(result, &mut count);
            Ok(topic_results(results, count))
        }
    }

    /// Describes topics, by name; each has its own error.
    pub(crate) fn describe_topics(
        self: &Arc<Self>,
        topics: &[Arc<str>],
        limit: Duration,
    ) -> Result<PerTopic<TopicState>, NativeError> {
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, limit)?;
        let mut names = Names::new(topics.iter().map(AsRef::as_ref))?;
        // SAFETY: as above; everything read belongs to the answer.
        unsafe {
            let collection = rd::rd_kafka_TopicCollection_of_topic_names(names.1.as_mut_ptr(), names.1.len());
            let answer = ask(self, &options, limit, |rk, options, queue| {
                rd::rd_kafka_DescribeTopics(rk, collection, options, queue);
            });
            rd::rd_kafka_TopicCollection_destroy(collection);
            let answer = answer?;
            let result = rd::rd_kafka_event_DescribeTopics_result(answer.0);
            let mut count = 0;
            let results = rd::rd_kafka_DescribeTopics_result_topics(result, &mut count);
            Ok(slice(results, count).iter().map(|topic| describe(*topic)).collect())
        }
    }

    /// The settings of topics that are asked for by `wanted`, by topic; each topic has its own error.
    pub(crate) fn topic_settings(
        self: &Arc<Self>,
        topics: &[Arc<str>],
        wanted: &[&str],
        limit: Duration,
    ) -> Result<PerTopic<BTreeMap<String, String>>, NativeError> {
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, limit)?;
        let names = Names::new(topics.iter().map(AsRef::as_ref))?;
        // SAFETY: as above.
        unsafe {
            let kind = rd::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC;
            let mut natives: Vec<_> =
                names.1.iter().map(|name| rd::rd_kafka_ConfigResource_new(kind, *name)).collect();
            let answer = ask(self, &options, limit, |rk, options, queue| {
                rd::rd_kafka_DescribeConfigs(rk, natives.as_mut_ptr(), natives.len(), options, queue);
            });
            rd::rd_kafka_ConfigResource_destroy_array(natives.as_mut_ptr(), natives.len());
            let answer = answer?;
            let result = rd::rd_kafka_event_DescribeConfigs_result(answer.0);
            let mut count = 0;
            let results = rd::rd_kafka_DescribeConfigs_result_resources(result, &mut count);
            Ok(slice(results, count).iter().map(|resource| settings(*resource, wanted)).collect())
        }
    }
}

/// Native topics to create; destroyed when dropped.
struct NewTopics(Vec<*mut rd::rd_kafka_NewTopic_t>);

impl NewTopics {
    fn push(&mut self, topic: &TopicSpec<'_>) -> Result<(), NativeError> {
        let name = CString::new(topic.name)?;
        let mut reason = [0; 512];
        // SAFETY: all strings live through the calls, which copy them.
        unsafe {
            let native = rd::rd_kafka_NewTopic_new(
                name.as_ptr(),
                topic.partitions,
                topic.replication_factor,
                reason.as_mut_ptr(),
                reason.len(),
            );
            if native.is_null() {
                return Err(NativeError::new(code::INVALID_TOPIC, text(reason.as_ptr())));
            }
            self.0.push(native);
            for (name, value) in topic.config {
                let (name, value) = (CString::new(name.as_str())?, CString::new(value.as_str())?);
                error::check(rd::rd_kafka_NewTopic_set_config(native, name.as_ptr(), value.as_ptr()))?;
            }
        }
        Ok(())
    }
}

impl Drop for NewTopics {
    fn drop(&mut self) {
        // SAFETY: ours, not used afterwards.
        unsafe { rd::rd_kafka_NewTopic_destroy_array(self.0.as_mut_ptr(), self.0.len()) };
    }
}

/// Reads a topic's description.
///
/// # Safety
/// `topic` is alive.
unsafe fn describe(
    topic: *const rd::rd_kafka_TopicDescription_t,
) -> (String, Result<TopicState, NativeError>) {
    // SAFETY: by the caller; everything read belongs to the topic.
    unsafe {
        let name = text(rd::rd_kafka_TopicDescription_name(topic));
        if let Err(error) = error::copy(rd::rd_kafka_TopicDescription_error(topic)) {
            return (name, Err(error));
        }
        let mut count = 0;
        let partitions = slice(rd::rd_kafka_TopicDescription_partitions(topic, &mut count), count);
        let led =
            partitions.iter().all(|partition| !rd::rd_kafka_TopicPartitionInfo_leader(*partition).is_null());
        let id = rd::rd_kafka_TopicDescription_topic_id(topic);
        let id = if id.is_null() {
            String::new()
        } else {
            let most = rd::rd_kafka_Uuid_most_significant_bits(id);
            let least = rd::rd_kafka_Uuid_least_significant_bits(id);
            base64((u128::from(most.cast_unsigned()) << 64) | u128::from(least.cast_unsigned()))
        };
        let partitions = i32::try_from(count).unwrap_or(i32::MAX);
        (name, Ok(TopicState { partitions, id, led }))
    }
}

/// 22 characters of unpadded URL-safe base64, as Kafka writes its ids.
fn base64(id: u128) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // 128 bits are 21 digits and two bits, which the last digit carries on top.
    let digit = |position: u32| {
        let bits = if position < 21 { id >> (122 - 6 * position) } else { id << 4 };
        char::from(DIGITS[usize::try_from(bits & 63).unwrap_or(0)])
    };
    (0..22).map(digit).collect()
}

/// Reads the wanted settings of a resource.
///
/// # Safety
/// `resource` is alive.
unsafe fn settings(
    resource: *const rd::rd_kafka_ConfigResource_t,
    wanted: &[&str],
) -> (String, Result<BTreeMap<String, String>, NativeError>) {
    // SAFETY: by the caller; everything read belongs to the resource.
    unsafe {
        let name = text(rd::rd_kafka_ConfigResource_name(resource));
        if let Err(error) = error::check_number(raw::rd_kafka_ConfigResource_error(resource)) {
            return (name, Err(reason(error, rd::rd_kafka_ConfigResource_error_string(resource))));
        }
        let mut count = 0;
        let entries = rd::rd_kafka_ConfigResource_configs(resource, &mut count);
        let found = slice(entries, count).iter().filter_map(|entry| {
            let name = text(rd::rd_kafka_ConfigEntry_name(*entry));
            wanted.contains(&name.as_str()).then(|| (name, text(rd::rd_kafka_ConfigEntry_value(*entry))))
        });
        (name, Ok(found.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn ids_are_written_as_kafka_writes_them() {
        assert_eq!(base64(0), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(base64(u128::MAX), "_____________________w");
        assert_eq!(base64(1), "AAAAAAAAAAAAAAAAAAAAAQ");
    }
}
