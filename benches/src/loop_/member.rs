//! Membership in the group: tasks come with an assignment and go with a revocation, all at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset, TopicPartitionList};

use super::Settings;
use super::native::Queue;
use super::task::{Prepared, Task, prepare};

/// What a rebalance leaves for the loop that polls: the callback has only a borrowed consumer.
#[derive(Default)]
pub(super) struct Membership {
    news: Mutex<Vec<News>>,
    /// No task is left: revocations need no preparation.
    leaving: AtomicBool,
}

enum News {
    Assigned(Vec<i32>),
    Revoked,
}

impl ClientContext for Membership {
    fn error(&self, error: KafkaError, reason: &str) {
        eprintln!("{error}: {reason}");
    }
}

impl ConsumerContext for Membership {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        error: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        if self.leaving.load(Ordering::Acquire) {
            // Closing goes on only once this is answered.
            if let Err(error) = consumer.unassign() {
                eprintln!("can't leave the group: {error}");
            }
            return;
        }
        let news = match error {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => {
                News::Assigned(partitions.elements().iter().map(|element| element.partition()).collect())
            }
            _ => News::Revoked,
        };
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(news);
    }
}

/// Works until `stop` is set.
pub fn run(settings: Settings, stop: &AtomicBool) -> anyhow::Result<()> {
    let settings = Arc::new(settings);
    let mut config = settings.client("consumer");
    config.set("group.id", &settings.group);
    config.set("partition.assignment.strategy", "range");
    config.set("heartbeat.interval.ms", "500");
    let consumer = Arc::new(BaseConsumer::from_config_and_context(&config, Membership::default())?);
    consumer.subscribe(&[&settings.input])?;

    let mut tasks: Vec<Task> = Vec::new();
    while !stop.load(Ordering::Acquire) {
        // Records come through the partitions' own queues; here only what concerns the group.
        if let Some(event) = consumer.poll(Duration::from_millis(100)) {
            event.context("the consumer failed")?;
        }
        let news =
            std::mem::take(&mut *consumer.context().news.lock().unwrap_or_else(PoisonError::into_inner));
        for news in news {
            tasks.drain(..).for_each(Task::stop);
            match news {
                News::Revoked => consumer.unassign()?,
                News::Assigned(partitions) => tasks = assign(&settings, &consumer, &partitions)?,
            }
        }
    }
    tasks.drain(..).for_each(Task::stop);
    consumer.context().leaving.store(true, Ordering::Release);
    consumer.unassign()?;
    Ok(())
}

/// Starts a task for each partition: all are fenced and restored beside one another, then reading starts.
fn assign(
    settings: &Arc<Settings>,
    consumer: &Arc<BaseConsumer<Membership>>,
    partitions: &[i32],
) -> anyhow::Result<Vec<Task>> {
    let prepared: Vec<Prepared> = thread::scope(|scope| {
        let threads: Vec<_> = partitions
            .iter()
            .map(|&partition| scope.spawn(move || prepare(settings, consumer, partition)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| anyhow::bail!("a thread panicked")))
            .collect::<Result<_, _>>()
    })?;
    let mut starts = TopicPartitionList::new();
    let mut tasks = Vec::new();
    for (&partition, prepared) in partitions.iter().zip(prepared) {
        starts.add_partition_offset(&settings.input, partition, Offset::Offset(prepared.offset))?;
        // SAFETY: tasks end, and with them their queues, before the consumer goes.
        let queue = unsafe { Queue::split(consumer.client().native_ptr(), &settings.input, partition)? };
        tasks.push(Task::start(settings, consumer, partition, queue, prepared));
    }
    consumer.assign(&starts)?;
    Ok(tasks)
}
