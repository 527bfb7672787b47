//! Checks of the project's own rules that no ready tool knows: that the page of semantics names tests that exist, and that
//! every dependency's licence is one of those that `deny.toml` allows.
//!
//! A crate of its own, so that these checks need nothing but Rust and are tested like everything else.

pub mod inventory;
pub mod licences;
pub mod page;
pub mod semantics;
pub mod spdx;

/// What a check found: one line for each fault, each naming its place.
pub type Faults = Vec<String>;
