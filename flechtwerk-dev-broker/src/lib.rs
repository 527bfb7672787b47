#![doc = include_str!("../README.md")]

pub mod log;
pub mod storage;
