//! A pipeline: named stages in one binary.

use crate::glue::{AnyStage, ResourceEntry};

/// Made by [`pipeline!`](crate::pipeline), run by [`main!`](crate::main).
#[derive(Clone, Copy)]
pub struct Pipeline {
    #[doc(hidden)]
    pub name: &'static str,
    #[doc(hidden)]
    pub stages: &'static [&'static dyn AnyStage],
    #[doc(hidden)]
    pub resources: &'static [ResourceEntry],
}

impl Pipeline {
    /// The pipeline's name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}
