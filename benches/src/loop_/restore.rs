//! Reads a partition of the changelog back into state.

use std::time::Duration;

use anyhow::Context as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};

use super::Settings;
use super::batch::State;
use super::native::{Kind, Queue, Taken};

/// Restores one partition's state, to the last stable offset. The previous owner was fenced before, so that
/// nothing can come after it.
pub(super) fn restore(settings: &Settings, partition: i32) -> anyhow::Result<State> {
    let mut state = State::default();
    let mut config = settings.client("consumer");
    config.set("group.id", format!("{}-restore", settings.group));
    config.set("enable.partition.eof", "true");
    let consumer: BaseConsumer = config.create()?;
    let topic = settings.changelog.as_str();
    let (_, end) = consumer
        .fetch_watermarks(topic, partition, Duration::from_secs(30))
        .context("can't find the changelog's end")?;
    if end == 0 {
        return Ok(state);
    }
    // SAFETY: the queue is dropped at the end of this function, before the consumer.
    let queue = unsafe { Queue::split(consumer.client().native_ptr(), topic, partition)? };
    let mut all = TopicPartitionList::new();
    all.add_partition_offset(topic, partition, Offset::Beginning)?;
    consumer.assign(&all)?;

    let mut taken = Taken::default();
    let mut position = 0;
    while position < end {
        for message in queue.take(Duration::from_millis(100), 5000, &mut taken) {
            match message.kind()? {
                Kind::Record => {
                    state.restore(message.key().unwrap_or_default(), message.value())?;
                    position = message.offset() + 1;
                }
                Kind::EndOfPartition => position = position.max(message.offset()),
            }
        }
    }
    drop(taken);
    consumer.unassign()?;
    drop(queue);
    Ok(state)
}
