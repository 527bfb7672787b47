//! Requests of the admin API: each is sent, waited for and read by one call.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as rd;
use rdkafka::bindings::rd_kafka_admin_op_t as Op;

use super::error::{self, NativeError, code};
use super::list::{self, Entry};
use super::{Handle, List, Queue, millis, text};
use crate::port::TopicPartition;

/// How long an answer may take beyond the time limit that librdkafka was given for it.
const GRACE: Duration = Duration::from_secs(1);

/// One answer for each of several topics, by name.
type PerTopic<T> = Vec<(String, Result<T, NativeError>)>;

/// What to ask an offset for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffsetSpec {
    Earliest,
    Latest,
    /// The first record that is not older, in milliseconds since the epoch.
    Since(i64),
}

/// What an end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// The last stable offset.
    Committed,
    /// The high watermark.
    Uncommitted,
}

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

/// An answer; destroyed when dropped.
struct Answer(*mut rd::rd_kafka_event_t);

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: ours, not used afterwards.
        unsafe { rd::rd_kafka_event_destroy(self.0) };
    }
}

/// Options of a request; destroyed when dropped.
struct Options(*mut rd::rd_kafka_AdminOptions_t);

impl Options {
    fn new(handle: &Handle, op: Op, limit: Duration) -> Result<Self, NativeError> {
        // SAFETY: `op` is of the enum; the reason is not asked for.
        unsafe {
            let options = Self(rd::rd_kafka_AdminOptions_new(handle.as_ptr(), op));
            error::check(rd::rd_kafka_AdminOptions_set_request_timeout(
                options.0,
                millis(limit),
                std::ptr::null_mut(),
                0,
            ))?;
            Ok(options)
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: ours, not used afterwards.
        unsafe { rd::rd_kafka_AdminOptions_destroy(self.0) };
    }
}

/// Sends a request by `send` and waits for its answer.
///
/// # Safety
/// `send` uses the three pointers for the one request only.
unsafe fn ask(
    handle: &Arc<Handle>,
    options: &Options,
    limit: Duration,
    send: impl FnOnce(*mut rd::rd_kafka_t, *const rd::rd_kafka_AdminOptions_t, *mut rd::rd_kafka_queue_t),
) -> Result<Answer, NativeError> {
    let queue = Queue::new(handle);
    send(handle.as_ptr(), options.0, queue.as_ptr());
    let event = queue.poll_raw(limit + GRACE);
    if event.is_null() {
        return Err(NativeError::new(code::LOCAL_TIMED_OUT, "no answer to an admin request"));
    }
    let answer = Answer(event);
    // SAFETY: the event is alive; its strings live as long.
    unsafe {
        error::check(rd::rd_kafka_event_error(answer.0)).map_err(|error| NativeError {
            text: text(rd::rd_kafka_event_error_string(answer.0)),
            ..error
        })?;
    }
    Ok(answer)
}

/// Makes a slice of what librdkafka calls an array and its count; null has none.
///
/// # Safety
/// `count` elements stand at `array` and live for `'a`.
unsafe fn slice<'a, T>(array: *const T, count: usize) -> &'a [T] {
    // SAFETY: by the caller.
    if array.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(array, count) } }
}

/// C strings, and pointers to them that are valid as long as the strings.
struct Names(
    #[expect(dead_code, reason = "keeps what the pointers point to")] Vec<CString>,
    Vec<*const c_char>,
);

impl Names {
    fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, NativeError> {
        let owned = names.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let pointers = owned.iter().map(|name| name.as_ptr()).collect();
        Ok(Self(owned, pointers))
    }
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
                let outcome = error::check(rd::rd_kafka_topic_result_error(*result));
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

    /// One offset of each partition; -1 where there is no record that fits.
    pub(crate) fn list_offsets(
        self: &Arc<Self>,
        partitions: &[TopicPartition],
        spec: OffsetSpec,
        isolation: Isolation,
        limit: Duration,
    ) -> Result<Vec<Entry>, NativeError> {
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_LISTOFFSETS, limit)?;
        let level = match isolation {
            Isolation::Committed => rd::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED,
            Isolation::Uncommitted => {
                rd::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED
            }
        };
        let asked = match spec {
            OffsetSpec::Earliest => rd::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_EARLIEST as i64,
            OffsetSpec::Latest => rd::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_LATEST as i64,
            OffsetSpec::Since(millis) => millis.max(0),
        };
        let mut list = List::new();
        for at in partitions {
            list.push(at, asked, None)?;
        }
        // SAFETY: as above.
        unsafe {
            error::take(rd::rd_kafka_AdminOptions_set_isolation_level(options.0, level))?;
            let answer = ask(self, &options, limit, |rk, options, queue| {
                rd::rd_kafka_ListOffsets(rk, list.as_ptr(), options, queue);
            })?;
            let result = rd::rd_kafka_event_ListOffsets_result(answer.0);
            let mut count = 0;
            let infos = rd::rd_kafka_ListOffsets_result_infos(result, &mut count);
            Ok(slice(infos, count)
                .iter()
                .map(|info| list::entry(rd::rd_kafka_ListOffsetsResultInfo_topic_partition(*info)))
                .collect())
        }
    }

    /// Committed offsets of any group, stable ones only.
    pub(crate) fn group_offsets(
        self: &Arc<Self>,
        group: &str,
        partitions: &[TopicPartition],
        limit: Duration,
    ) -> Result<Vec<Entry>, NativeError> {
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, limit)?;
        let group = CString::new(group)?;
        let list = List::of(partitions)?;
        // SAFETY: as above.
        unsafe {
            error::take(rd::rd_kafka_AdminOptions_set_require_stable_offsets(options.0, 1))?;
            let mut request = rd::rd_kafka_ListConsumerGroupOffsets_new(group.as_ptr(), list.as_ptr());
            let answer = ask(self, &options, limit, |rk, options, queue| {
                rd::rd_kafka_ListConsumerGroupOffsets(rk, &mut request, 1, options, queue);
            });
            rd::rd_kafka_ListConsumerGroupOffsets_destroy(request);
            let answer = answer?;
            let result = rd::rd_kafka_event_ListConsumerGroupOffsets_result(answer.0);
            let mut count = 0;
            group_result(rd::rd_kafka_ListConsumerGroupOffsets_result_groups(result, &mut count), count)
        }
    }

    /// Commits offsets to a group without members.
    pub(crate) fn alter_group_offsets(
        self: &Arc<Self>,
        group: &str,
        offsets: &List,
        limit: Duration,
    ) -> Result<Vec<Entry>, NativeError> {
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, limit)?;
        let group = CString::new(group)?;
        // SAFETY: as above.
        unsafe {
            let mut request = rd::rd_kafka_AlterConsumerGroupOffsets_new(group.as_ptr(), offsets.as_ptr());
            let answer = ask(self, &options, limit, |rk, options, queue| {
                rd::rd_kafka_AlterConsumerGroupOffsets(rk, &mut request, 1, options, queue);
            });
            rd::rd_kafka_AlterConsumerGroupOffsets_destroy(request);
            let answer = answer?;
            let result = rd::rd_kafka_event_AlterConsumerGroupOffsets_result(answer.0);
            let mut count = 0;
            group_result(rd::rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &mut count), count)
        }
    }

    /// The number of members of a group.
    pub(crate) fn group_members(
        self: &Arc<Self>,
        group: &str,
        limit: Duration,
    ) -> Result<usize, NativeError> {
        let options = Options::new(self, Op::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS, limit)?;
        let mut names = Names::new([group])?;
        // SAFETY: as above.
        unsafe {
            let answer = ask(self, &options, limit, |rk, options, queue| {
                rd::rd_kafka_DescribeConsumerGroups(rk, names.1.as_mut_ptr(), 1, options, queue);
            })?;
            let result = rd::rd_kafka_event_DescribeConsumerGroups_result(answer.0);
            let mut count = 0;
            let groups = rd::rd_kafka_DescribeConsumerGroups_result_groups(result, &mut count);
            let Some(group) = slice(groups, count).first() else { return Ok(0) };
            error::copy(rd::rd_kafka_ConsumerGroupDescription_error(*group))?;
            Ok(rd::rd_kafka_ConsumerGroupDescription_member_count(*group))
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
        if let Err(error) = error::check(rd::rd_kafka_ConfigResource_error(resource)) {
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

/// Reads the offsets of the one group that was asked for.
///
/// # Safety
/// The results are alive.
unsafe fn group_result(
    results: *mut *const rd::rd_kafka_group_result_t,
    count: usize,
) -> Result<Vec<Entry>, NativeError> {
    // SAFETY: by the caller.
    unsafe {
        let Some(group) = slice(results, count).first() else { return Ok(Vec::new()) };
        error::copy(rd::rd_kafka_group_result_error(*group))?;
        Ok(list::entries(rd::rd_kafka_group_result_partitions(*group)))
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
