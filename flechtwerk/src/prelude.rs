//! All that a pipeline needs: `use flechtwerk::prelude::*;`. It does not bring `Result`, which keeps its usual meaning.

pub use crate::codec::{Avro, BigEndian, Bytes, Cbor, Codec, Confluent, Json, Nullable, Protobuf, Utf8};
pub use crate::next::Next;
pub use crate::out::{Out, OutRecord};
pub use crate::param::Slot;
pub use crate::record::{Headers, Record};
pub use crate::resource::Res;
pub use crate::shared::Shared;
pub use crate::table::Table;
pub use crate::timers::{Timer, Timers};
pub use crate::topic::Topic;
pub use crate::{Input, State, extractor, main, pipeline, resource, topic, transformer};
