//! Every rule that the development broker keeps, as one check each; the same checks run against a real Apache Kafka.
//!
//! A check's name says the rule. One that makes sense on one of the brokers alone says why in its comment.

mod admin_configs;
mod admin_topics;
mod arguments;
mod bad_input;
mod codes_by_version;
mod compaction;
mod completing;
mod delete_records;
mod describe;
mod dice;
mod differential;
mod differential_groups;
mod differential_log;
mod differential_members;
mod faults;
mod fencing;
mod fetch;
mod group_admin;
mod group_join;
mod group_members;
mod group_static;
mod idempotence;
mod interleavings;
mod isolation;
mod list_offsets;
mod newer_versions;
mod nodes;
mod offsets;
mod offsets_in_transactions;
mod produce;
mod produce_refused;
mod restart;
mod transaction_tools;
mod transactions;
mod txn_markers;
mod versions;
