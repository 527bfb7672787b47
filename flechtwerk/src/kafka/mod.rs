//! The adapters to Apache Kafka behind the ports: everything that talks to a cluster goes through here.
//!
//! [`Kafka`] is the entry: settings in, ports out. The only unsafe code of the crate is in [`ffi`]; the rest
//! turns its calls into what the ports promise.

mod client;
mod clients;
mod cluster;
mod errors;
mod ffi;
mod group;
mod logging;
mod offsets;
mod producer;
mod reader;
mod settings;
#[cfg(all(test, feature = "broker-tests"))]
mod tests;

use std::sync::Arc;

pub(crate) use clients::KafkaClients;
pub(crate) use ffi::malloc;
pub(crate) use settings::ClientSettings;

use crate::port::{BrokerError, Cluster, Group, GroupEvent, ProducerFactory, Reader, ReaderKind};

/// Makes clients of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct Kafka {
    settings: Arc<ClientSettings>,
}

impl Kafka {
    pub(crate) fn new(settings: ClientSettings) -> Self {
        Self { settings: Arc::new(settings) }
    }

    /// A client for administration.
    pub(crate) fn cluster(&self) -> Result<Arc<dyn Cluster>, BrokerError> {
        Ok(Arc::new(cluster::KafkaCluster::new(&self.settings)?))
    }

    /// Makes transactional producers.
    pub(crate) fn producers(&self) -> Arc<dyn ProducerFactory> {
        Arc::new(producer::KafkaProducers::new(Arc::clone(&self.settings)))
    }

    /// A consumer without a subscription. It never joins `group_id`, which librdkafka wants all the same.
    pub(crate) fn reader(&self, group_id: &str, kind: ReaderKind) -> Result<Arc<dyn Reader>, BrokerError> {
        Ok(Arc::new(reader::KafkaReader::new(&self.settings, group_id, kind)?))
    }

    /// Joins a group and polls on a thread of its own. `events` is called from that thread and must not wait.
    pub(crate) fn join(
        &self,
        application_id: &str,
        topics: &[Arc<str>],
        instance_id: Option<&str>,
        events: Box<dyn Fn(GroupEvent) + Send + Sync>,
    ) -> Result<Arc<dyn Group>, BrokerError> {
        Ok(Arc::new(group::KafkaGroup::join(&self.settings, application_id, topics, instance_id, events)?))
    }
}
