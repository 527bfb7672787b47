//! What the members of a group subscribe to. The admin API does not tell it; the older list of groups does, as the bytes
//! that each member has joined with.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::bindings as rd;

use super::admin::slice;
use super::error::{self, NativeError};
use super::{Handle, millis, raw, text};

/// A member, and the topics that it asks for; without those where they can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub(crate) client_id: String,
    pub(crate) host: String,
    pub(crate) topics: Vec<String>,
}

impl Handle {
    /// All members of a group.
    pub(crate) fn subscriptions(
        self: &Arc<Self>,
        group: &str,
        limit: Duration,
    ) -> Result<Vec<Subscription>, NativeError> {
        let group = CString::new(group)?;
        let mut list = std::ptr::null();
        // SAFETY: the list is alive until it is destroyed below, and all of it is copied before. Its groups are read field
        // by field: their error codes may be none that the bindings' enum has.
        unsafe {
            let result = raw::rd_kafka_list_groups(self.as_ptr(), group.as_ptr(), &mut list, millis(limit));
            if list.is_null() {
                error::check_number(result)?;
                return Ok(Vec::new());
            }
            let mut found = Vec::new();
            for number in 0..usize::try_from((*list).group_cnt).unwrap_or(0) {
                let group = (*list).groups.add(number);
                let count = usize::try_from((*group).member_cnt).unwrap_or(0);
                for member in slice((*group).members, count) {
                    let size = usize::try_from(member.member_metadata_size).unwrap_or(0);
                    found.push(Subscription {
                        client_id: text(member.client_id),
                        host: text(member.client_host),
                        topics: topics(slice(member.member_metadata.cast::<u8>(), size)).unwrap_or_default(),
                    });
                }
            }
            rd::rd_kafka_group_list_destroy(list);
            Ok(found)
        }
    }
}

/// The topics in the metadata of the consumer protocol: a version, and a list of names.
fn topics(metadata: &[u8]) -> Option<Vec<String>> {
    let (_version, rest) = metadata.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut topics = Vec::new();
    for _ in 0..i32::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (name, after) = after.split_at_checked(usize::try_from(i16::from_be_bytes(*length)).ok()?)?;
        topics.push(String::from_utf8_lossy(name).into_owned());
        rest = after;
    }
    Some(topics)
}

#[cfg(test)]
mod tests {
    use super::topics;

    #[test]
    fn topics_of_a_subscription() {
        let metadata = b"\0\x03\0\0\0\x02\0\x05words\0\x01a\0\0\0\0and whatever follows";
        assert_eq!(topics(metadata).unwrap(), ["words", "a"]);
        assert_eq!(topics(b"\0\x01\0\0\0\0").unwrap(), [""; 0]);
        for short in 0..14 {
            assert_eq!(topics(&metadata[..short]), None, "{short}");
        }
        assert_eq!(topics(b"\0\0\0\0\0\x01\xff\xff"), None);
    }
}
