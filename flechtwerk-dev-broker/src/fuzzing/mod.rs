//! What the fuzz targets, the long run and a short test have in common: input that lies, made from input that is true.
//!
//! A target is a function of an [`Entropy`]: a seed, so that a run can be repeated, or the bytes that a coverage-guided fuzzer
//! chose. It panics where the broker does something that it must never do. Compiled for tests and with the feature `fuzzing`.

mod entropy;
mod folder;
mod frames;
mod hang;
mod logs;
mod messages;
mod requests;
#[cfg(test)]
mod tests;

pub use entropy::Entropy;
pub use folder::data_folder;
pub use frames::{frame_bytes, frames};
pub use hang::end_with_a_hang;
pub use logs::logs;
pub use requests::requests;
