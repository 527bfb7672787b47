//! Pages by hand: what the stage `fetch` does, written on rdkafka for this job alone. One thread and one transactional
//! producer for each token; it gives the same guarantee, but does not restore cursors, and ends at any error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use flechtwerk_benches::cluster::Cluster;
use flechtwerk_benches::loop_::commit;
use flechtwerk_benches::pages::MESSAGES;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::{Offset, TopicPartitionList};

const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Parser)]
struct Arguments {
    #[arg(long)]
    bootstrap_servers: String,
    #[arg(long)]
    group: String,
    #[arg(long)]
    input: String,
    #[arg(long)]
    output: String,
    #[arg(long)]
    configs: u64,
    #[arg(long)]
    pages: u64,
    #[arg(long)]
    tokens: i32,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let cluster = Cluster { bootstrap_servers: arguments.bootstrap_servers.clone() };
    let consumer = cluster.consumer(&arguments.group)?;
    consumer.subscribe(&[&arguments.input])?;
    while consumer.assignment()?.count() < arguments.tokens as usize {
        consumer.poll(Duration::from_millis(50));
    }
    consumer.pause(&consumer.assignment()?)?;
    let (consumer, over) = (Arc::new(Mutex::new(consumer)), AtomicBool::new(false));
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let tokens: Vec<_> = (0..arguments.tokens)
            .map(|token| {
                let (arguments, consumer) = (arguments.clone(), consumer.clone());
                scope.spawn(move || run(&arguments, token, &consumer))
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                lock(&consumer).poll(Duration::ZERO);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let results: Vec<_> = tokens.into_iter().map(|token| token.join()).collect();
        over.store(true, Ordering::Release);
        for result in results {
            result.map_err(|_| anyhow::anyhow!("a token panicked"))??;
        }
        Ok(())
    })?;
    // Until it is told to end, as a service would.
    loop {
        std::thread::park();
    }
}

fn lock(consumer: &Mutex<BaseConsumer>) -> std::sync::MutexGuard<'_, BaseConsumer> {
    consumer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(arguments: &Arguments, token: i32, consumer: &Mutex<BaseConsumer>) -> anyhow::Result<()> {
    let cluster = Cluster { bootstrap_servers: arguments.bootstrap_servers.clone() };
    let mut config = cluster.client();
    config.set("transactional.id", format!("{}-{token}", arguments.group));
    config.set("partitioner", "murmur2_random").set("linger.ms", "0").set("retry.backoff.ms", "1");
    // A commit waits until all reports are taken, each by a call of its own.
    config.set("delivery.report.only.error", "true");
    let producer: BaseProducer = config.create()?;
    producer.init_transactions(LIMIT)?;
    let changelog = format!("{}-changelog", arguments.group);
    let mine: Vec<String> = (0..arguments.configs)
        .filter(|config| config % arguments.tokens as u64 == token as u64)
        .map(|config| format!("config-{config}"))
        .collect();
    for page in 0..arguments.pages {
        for key in &mine {
            producer.begin_transaction()?;
            let mut lease = TopicPartitionList::new();
            lease.add_partition_offset(&arguments.input, token, Offset::Offset(0))?;
            let group = lock(consumer).group_metadata().context("not in the group")?;
            producer.send_offsets_to_transaction(&lease, &group, LIMIT)?;
            for message in 0..MESSAGES {
                let value = (page * MESSAGES + message).to_string();
                let record = BaseRecord::to(&arguments.output).key(key).payload(&value);
                producer.send(record).map_err(|(error, _)| error)?;
            }
            let cursor = (page + 1).to_string();
            let record = BaseRecord::to(&changelog).partition(token).key(key).payload(&cursor);
            producer.send(record).map_err(|(error, _)| error)?;
            commit(&producer, LIMIT)?;
            producer.poll(Duration::ZERO);
        }
    }
    Ok(())
}
