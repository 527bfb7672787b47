//! Lists of partitions with offsets and metadata.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use rdkafka::bindings as rd;

use super::error::NativeError;
use super::text;
use crate::port::TopicPartition;

/// One element, copied out.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: TopicPartition,
    /// Negative where there is none.
    pub(crate) offset: i64,
    /// Lossy where it is not UTF-8.
    pub(crate) metadata: String,
    pub(crate) code: i32,
}

/// An owned native list.
pub(crate) struct List(*mut rd::rd_kafka_topic_partition_list_t);

// SAFETY: plain memory without any thread of its own; `&List` only reads it.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl List {
    pub(crate) fn new() -> Self {
        // SAFETY: allocates; aborts the process when out of memory, never null.
        Self(unsafe { rd::rd_kafka_topic_partition_list_new(8) })
    }

    /// Partitions without offsets.
    pub(crate) fn of(partitions: &[TopicPartition]) -> Result<Self, NativeError> {
        let mut list = Self::new();
        for at in partitions {
            list.push(at, -1001, None)?;
        }
        Ok(list)
    }

    /// Adds a partition; `metadata` goes with a committed offset.
    pub(crate) fn push(
        &mut self,
        at: &TopicPartition,
        offset: i64,
        metadata: Option<&str>,
    ) -> Result<(), NativeError> {
        let topic = CString::new(&*at.topic)?;
        // SAFETY: the list is ours; the element stays valid until the next addition. The metadata is allocated
        // by `malloc`, because the list frees it by `free` when it is destroyed.
        unsafe {
            let element = rd::rd_kafka_topic_partition_list_add(self.0, topic.as_ptr(), at.partition);
            (*element).offset = offset;
            if let Some(metadata) = metadata.filter(|metadata| !metadata.is_empty()) {
                let copy = libc::malloc(metadata.len());
                if copy.is_null() {
                    return Err(NativeError::new(super::code::LOCAL_INVALID_ARG, "out of memory"));
                }
                std::ptr::copy_nonoverlapping(metadata.as_ptr(), copy.cast::<u8>(), metadata.len());
                (*element).metadata = copy.cast::<c_void>();
                (*element).metadata_size = metadata.len();
            }
        }
        Ok(())
    }

    /// The elements, in order.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        // SAFETY: ours and alive.
        unsafe { entries(self.0) }
    }

    pub(super) fn as_ptr(&self) -> *mut rd::rd_kafka_topic_partition_list_t {
        self.0
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: ours, and not used afterwards.
        unsafe { rd::rd_kafka_topic_partition_list_destroy(self.0) };
    }
}

/// Copies the elements of a list that may belong to somebody else; null has none.
///
/// # Safety
/// `list` is null or alive.
pub(super) unsafe fn entries(list: *const rd::rd_kafka_topic_partition_list_t) -> Vec<Entry> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: `cnt` elements stand at `elems`; topic names are C strings.
    unsafe {
        let count = usize::try_from((*list).cnt).unwrap_or(0);
        (0..count).map(|index| entry((*list).elems.add(index))).collect()
    }
}

/// Copies one element.
///
/// # Safety
/// `element` is alive.
pub(super) unsafe fn entry(element: *const rd::rd_kafka_topic_partition_t) -> Entry {
    // SAFETY: by the caller; the metadata is `metadata_size` bytes where it is not null. The error is read as a
    // number, since it may lie outside of the enum.
    unsafe {
        let metadata = if (*element).metadata.is_null() {
            String::new()
        } else {
            let bytes =
                std::slice::from_raw_parts((*element).metadata.cast::<u8>(), (*element).metadata_size);
            String::from_utf8_lossy(bytes).into_owned()
        };
        Entry {
            at: TopicPartition { topic: Arc::from(text((*element).topic)), partition: (*element).partition },
            offset: (*element).offset,
            metadata,
            code: std::ptr::addr_of!((*element).err).cast::<i32>().read(),
        }
    }
}
