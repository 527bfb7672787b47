//! The adapters against a real Kafka.

mod support;

mod cluster;
mod group;
mod outage;
mod producer;
mod reader;
