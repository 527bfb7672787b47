//! Mistakes that flechtwerk's macros must explain; see the README. The crate itself is empty.
