#![doc = include_str!("../README.md")]

mod broker;
mod error_code;
mod fault;
mod requests;
mod wire;

// Open for the tests, the fuzz targets and the benchmarks of this crate; no part of what it promises.
#[doc(hidden)]
pub mod coordinator;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod storage;

pub use broker::{BrokerError, Builder, DevBroker, NewTopic, StartError};
pub use error_code::ErrorCode;
pub use fault::{Fault, FaultBuilder, Held, Request, Requests};
pub use wire::Api;
