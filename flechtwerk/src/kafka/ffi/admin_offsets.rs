//! Requests of the admin API about offsets and groups.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as rd;
use rdkafka::bindings::rd_kafka_admin_op_t as Op;

use super::admin::{Names, Options, ask, slice};
use super::error::{self, NativeError};
use super::list::{self, Entry};
use super::{Handle, List};
use crate::port::TopicPartition;

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

impl Handle {
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
