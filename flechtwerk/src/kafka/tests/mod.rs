//! The adapters against a real Kafka.

mod support;

mod cluster;
