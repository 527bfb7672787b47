//! One partition: a worker that computes batches, and a committer that owns the transactional producer.
//!
//! Two batches go round between them. The worker computes on one while the other commits; having both in hand
//! means that no commit is under way.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::producer::{BaseProducer, Producer as _};
use rdkafka::{Offset, TopicPartitionList};

use super::Settings;
use super::batch::{Batch, State};
use super::member::Membership;
use super::native::{self, Kind, Outgoing, Queue, Taken, Topic};

/// How long a broker may be away before the process gives up.
const BROKER_TIMEOUT: Duration = Duration::from_secs(120);

/// Fenced and restored, but not reading yet.
pub(super) struct Prepared {
    producer: BaseProducer,
    state: State,
    /// Where reading starts.
    pub(super) offset: i64,
}

/// Fences the previous owner, then asks what it committed, then restores: in this order, since only behind the
/// fence nothing can change any more.
pub(super) fn prepare(
    settings: &Settings,
    consumer: &BaseConsumer<Membership>,
    partition: i32,
) -> anyhow::Result<Prepared> {
    let mut config = settings.client("producer");
    config.set("transactional.id", format!("{}-{partition}", settings.group));
    let producer: BaseProducer = config.create()?;
    // A client without a connection to a real broker waits 500 ms in `init_transactions`. The first answer comes
    // from the bootstrap connection, which is dropped with it; the second from a broker.
    for _ in 0..2 {
        producer.client().fetch_metadata(Some(&settings.output), BROKER_TIMEOUT)?;
    }
    producer.init_transactions(BROKER_TIMEOUT).context("can't fence the previous owner")?;

    let mut asked = TopicPartitionList::new();
    asked.add_partition(&settings.input, partition);
    let committed =
        consumer.committed_offsets(asked, BROKER_TIMEOUT).context("can't read the committed offset")?;
    let offset = match committed.elements().first().map(|element| element.offset()) {
        Some(Offset::Offset(offset)) => offset,
        _ => consumer.fetch_watermarks(&settings.input, partition, BROKER_TIMEOUT)?.0,
    };
    let state = super::restore::restore(settings, partition)?;
    Ok(Prepared { producer, state, offset })
}

/// A partition at work.
pub(super) struct Task {
    stop: Arc<AtomicBool>,
    queue: Arc<Queue>,
    threads: [JoinHandle<()>; 2],
}

impl Task {
    pub(super) fn start(
        settings: &Arc<Settings>,
        consumer: &Arc<BaseConsumer<Membership>>,
        partition: i32,
        queue: Queue,
        prepared: Prepared,
    ) -> Task {
        let Prepared { producer, state, .. } = prepared;
        let queue = Arc::new(queue);
        let stop = Arc::new(AtomicBool::new(false));
        let (full, commits) = channel();
        let (done, free) = channel();
        for _ in 0..2 {
            // The receiver is right here.
            let _ = done.send(Batch::default());
        }
        let worker = Worker {
            settings: settings.clone(),
            queue: queue.clone(),
            stop: stop.clone(),
            state,
            full,
            free,
        };
        let committer = Committer {
            settings: settings.clone(),
            consumer: consumer.clone(),
            partition,
            queue: queue.clone(),
            producer,
            commits,
            done,
        };
        let threads = [
            thread::spawn(move || or_exit(partition, worker.run())),
            thread::spawn(move || or_exit(partition, committer.run())),
        ];
        Task { stop, queue, threads }
    }

    /// Ends it: what is committing commits, what was computed after that is forgotten.
    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::Release);
        self.queue.wake();
        for thread in self.threads {
            // A panic was printed where it happened, and ends the process there.
            let _ = thread.join();
        }
    }
}

/// The loop has one answer to failure: the fence, the transaction and the changelog make a restart exact.
fn or_exit(partition: i32, result: anyhow::Result<()>) {
    if let Err(error) = result {
        eprintln!("partition {partition}: {error:#}");
        process::exit(1);
    }
}

struct Worker {
    settings: Arc<Settings>,
    queue: Arc<Queue>,
    stop: Arc<AtomicBool>,
    state: State,
    full: Sender<Batch>,
    free: Receiver<Batch>,
}

impl Worker {
    fn run(mut self) -> anyhow::Result<()> {
        let (max, interval) = (self.settings.max_poll_records, self.settings.commit_interval);
        let idle = Duration::from_millis(500);
        let mut taken = Taken::default();
        let mut number = 1;
        let mut batch = self.free.recv()?;
        batch.open(number);
        let mut other = Some(self.free.recv()?);
        let mut last_commit: Option<Instant> = None;

        while !self.stop.load(Ordering::Acquire) {
            if other.is_none() {
                // A full batch can only wait for the commit before it.
                other = if batch.len() >= max { Some(self.free.recv()?) } else { self.free.try_recv().ok() };
            }
            let wait = match last_commit {
                _ if batch.is_empty() => idle,
                Some(last) => interval.saturating_sub(last.elapsed()),
                None => Duration::ZERO,
            };
            let full = batch.len() >= max;
            if (full || (!batch.is_empty() && wait.is_zero()))
                && let Some(next) = other.take()
            {
                last_commit = Some(Instant::now());
                batch.close()?;
                self.full.send(batch)?;
                number += 1;
                batch = next;
                batch.open(number);
                continue;
            }
            // The end of a commit wakes this.
            let wait = if wait.is_zero() { idle } else { wait };
            for message in self.queue.take(wait, max - batch.len(), &mut taken) {
                let Kind::Record = message.kind()? else { continue };
                let key = message
                    .key()
                    .with_context(|| format!("no key in the input record at offset {}", message.offset()))?;
                batch.count(&mut self.state, key, message.timestamp(), message.offset())?;
            }
        }
        Ok(())
    }
}

struct Committer {
    settings: Arc<Settings>,
    consumer: Arc<BaseConsumer<Membership>>,
    partition: i32,
    queue: Arc<Queue>,
    producer: BaseProducer,
    commits: Receiver<Batch>,
    done: Sender<Batch>,
}

impl Committer {
    fn run(self) -> anyhow::Result<()> {
        let output = Topic::new(&self.producer, &self.settings.output)?;
        let changelog = Topic::new(&self.producer, &self.settings.changelog)?;
        let mut room = Outgoing::default();
        // Ends when the worker has.
        while let Ok(batch) = self.commits.recv() {
            self.producer.begin_transaction()?;
            changelog.produce_batch(self.partition, batch.changes(), &mut room)?;
            output.produce(&self.producer, batch.outputs())?;
            let mut offsets = TopicPartitionList::new();
            offsets.add_partition_offset(
                &self.settings.input,
                self.partition,
                Offset::Offset(batch.next_offset),
            )?;
            let group = self.consumer.group_metadata().context("not in the group")?;
            self.producer
                .send_offsets_to_transaction(&offsets, &group, BROKER_TIMEOUT)
                .context("can't commit the offset")?;
            native::commit(&self.producer, BROKER_TIMEOUT)?;
            self.producer.poll(Duration::ZERO);
            if self.done.send(batch).is_ok() {
                self.queue.wake();
            }
        }
        Ok(())
    }
}
