//! The adapters against a real Kafka.

#[cfg(feature = "sasl")]
mod security;
mod support;

mod cluster;
mod group;
mod outage;
mod producer;
mod reader;
