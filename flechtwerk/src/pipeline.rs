//! A pipeline: named stages in one binary.

use crate::glue::AnyStage;

/// Made by [`pipeline!`](crate::pipeline), run by [`main!`](crate::main).
#[derive(Clone, Copy)]
pub struct Pipeline {
    #[doc(hidden)]
    pub name: &'static str,
    #[doc(hidden)]
    pub stages: &'static [&'static dyn AnyStage],
}

impl Pipeline {
    /// The pipeline's name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}
