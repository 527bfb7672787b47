//! Requests that many checks make, each as one method of [`Client`](crate::Client).

pub mod groups;
pub mod records;
pub mod topics;
pub mod transactions;
