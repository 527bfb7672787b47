//! Every rule that the development broker keeps, as one check each; the same checks run against a real Apache Kafka.
//!
//! A check's name says the rule. One that makes sense on one of the brokers alone says why in its comment.

mod admin_configs;
mod admin_topics;
mod delete_records;
mod fetch;
mod list_offsets;
mod produce;
mod produce_refused;
mod versions;
