//! The macros of flechtwerk.
