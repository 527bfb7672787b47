//! The topics that a stage reads, as nested pairs of their types: each record goes to the topic that its index says.

use super::{FailureKind, RawRecord, RecordPart, Tried, policy};
use crate::error::BoxError;
use crate::input::Accepts;
use crate::record::Record;
use crate::topic::Topic;

/// The topics of the inputs, as nested pairs.
pub trait Topics<I>: 'static {
    fn decode(index: u16, raw: &RawRecord) -> Tried<I>;
    /// What the topic says of a record that did not decode, where it is read whole: another record, or none (S9.2).
    fn on_invalid(
        index: u16,
        raw: &RawRecord,
        stage: &'static str,
        part: RecordPart,
        error: BoxError,
    ) -> Tried<Option<RawRecord>>;
}

impl<I> Topics<I> for () {
    fn decode(_: u16, _: &RawRecord) -> Tried<I> {
        unreachable!("the runtime hands a stage records of its own inputs only")
    }

    fn on_invalid(
        _: u16,
        _: &RawRecord,
        _: &'static str,
        part: RecordPart,
        error: BoxError,
    ) -> Tried<Option<RawRecord>> {
        Err((FailureKind::Decode(part), error))
    }
}

impl<I: Accepts<Record<T>>, T: Topic, Rest: Topics<I>> Topics<I> for (T, Rest) {
    fn decode(index: u16, raw: &RawRecord) -> Tried<I> {
        if index == 0 { I::accept(raw) } else { Rest::decode(index - 1, raw) }
    }

    fn on_invalid(
        index: u16,
        raw: &RawRecord,
        stage: &'static str,
        part: RecordPart,
        error: BoxError,
    ) -> Tried<Option<RawRecord>> {
        match (index, T::ON_INVALID) {
            (0, Some(decide)) => policy::of_topic::<T>(decide, raw, stage, part, error),
            (0, None) => Err((FailureKind::Decode(part), error)),
            _ => Rest::on_invalid(index - 1, raw, stage, part, error),
        }
    }
}
