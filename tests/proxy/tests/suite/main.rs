//! The proxy in front of a development broker, with clients that speak the raw protocol.

mod actions;
mod addresses;
mod ends;
mod nodes;
mod setup;
