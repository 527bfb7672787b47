//! The broker as a program.

fn main() {}
