//! The clients of a stage instance, as the runtime asks for them.

use std::sync::Arc;

use super::Kafka;
use crate::port::{BrokerError, Clients, Group, GroupEvent, ProducerFactory, Reader, ReaderKind};

/// Clients of one cluster, of an instance that may have an id.
pub(crate) struct KafkaClients {
    pub(crate) kafka: Kafka,
    /// `group.instance.id`: static membership (KIP-345).
    pub(crate) instance_id: Option<String>,
}

impl Clients for KafkaClients {
    fn join(
        &self,
        application_id: &str,
        topics: &[Arc<str>],
        events: Box<dyn Fn(GroupEvent) + Send + Sync>,
    ) -> Result<Arc<dyn Group>, BrokerError> {
        self.kafka.join(application_id, topics, self.instance_id.as_deref(), events)
    }

    fn reader(&self, application_id: &str, kind: ReaderKind) -> Result<Arc<dyn Reader>, BrokerError> {
        self.kafka.reader(application_id, kind)
    }

    fn producers(&self) -> Arc<dyn ProducerFactory> {
        self.kafka.producers()
    }
}
