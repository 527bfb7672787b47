//! Loads the input: the airports at once, the flights at an even pace.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use flechtwerk::Topic;
use flight_delays::{Airports, Flights};
use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use serde::Serialize;

use crate::data::Data;
use crate::run::Progress;

/// Notes the first record that did not arrive: an input that is not whole would make the comparison worthless.
#[derive(Default)]
struct Deliveries {
    failed: std::sync::Mutex<Option<KafkaError>>,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let (Err((error, _)), Ok(mut failed)) = (result, self.failed.lock()) {
            failed.get_or_insert_with(|| error.clone());
        }
    }
}

/// Writes to the input topics.
pub(crate) struct Loader {
    producer: BaseProducer<Deliveries>,
}

impl Loader {
    pub(crate) fn new(brokers: &str) -> anyhow::Result<Self> {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("enable.idempotence", "true")
            // As the pipeline and every Java client: what belongs to one airport lies in partitions of one number.
            .set("partitioner", "murmur2_random")
            .set("linger.ms", "5")
            .create_with_context(Deliveries::default())?;
        Ok(Self { producer })
    }

    /// Writes all airports, and returns when they have arrived.
    pub(crate) fn airports(&self, data: &Data) -> anyhow::Result<()> {
        for (code, airport) in &data.airports {
            self.send(Airports::NAME, code, airport)?;
        }
        self.arrived()
    }

    /// Writes all flights within `time`.
    pub(crate) fn flights(
        &self,
        data: &Data,
        time: Duration,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        for (n, (origin, flight)) in data.flights.iter().enumerate() {
            let due = time.mul_f64(n as f64 / data.flights.len() as f64);
            while let Some(early) = due.checked_sub(start.elapsed()).filter(|early| !early.is_zero()) {
                self.producer.poll(early.min(Duration::from_millis(20)));
            }
            self.send(Flights::NAME, origin, flight)?;
            progress.sent.store(n as u64 + 1, Ordering::Relaxed);
        }
        self.arrived()
    }

    fn send(&self, topic: &str, key: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let value = serde_json::to_vec(value)?;
        let mut record = BaseRecord::to(topic).key(key).payload(&value);
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), same)) => {
                    record = same;
                    self.producer.poll(Duration::from_millis(20));
                }
                Err((error, _)) => return Err(error).with_context(|| format!("writing to topic {topic}")),
            }
        }
    }

    fn arrived(&self) -> anyhow::Result<()> {
        self.producer.flush(Duration::from_secs(30)).context("waiting for the input to arrive")?;
        match self.producer.context().failed.lock().ok().and_then(|mut failed| failed.take()) {
            Some(error) => Err(error).context("a record of the input did not arrive"),
            None => Ok(()),
        }
    }
}
