//! Without the feature `schema-registry` no topic has a schema.

use std::sync::Arc;

use super::{Chosen, Problem, Program};
use crate::port::Schemas;
use crate::settings::Settings;

/// There are none.
pub(crate) enum ReadySchemas {}

impl ReadySchemas {
    pub(crate) fn missing(&self) -> std::iter::Empty<&str> {
        match *self {}
    }

    pub(crate) fn put_in_force(self) -> Result<Arc<dyn Schemas>, Vec<Problem>> {
        match self {}
    }
}

/// Nothing is wrong with them.
pub(crate) fn check_schemas(
    _: &[Chosen],
    _: &Settings,
    _: &Program,
) -> Result<Option<ReadySchemas>, Vec<Problem>> {
    Ok(None)
}
