//! The port to a schema registry, as far as a run needs it.

use super::BrokerError;

/// Where schemas come from that records name.
pub(crate) trait Schemas: Send + Sync {
    /// Asks for a schema, once, and keeps the answer for all codecs of this process: also that there is none of this id.
    fn fetch(&self, id: u32) -> Result<(), BrokerError>;
}
